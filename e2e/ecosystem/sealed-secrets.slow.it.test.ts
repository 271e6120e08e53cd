import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { clusterRoleBindings, deployments, secrets, serviceAccounts } from '../../lib/kube/index.ts';
import { fleetApplications, isSyncedAndHealthy } from '../fleet/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import type { ImageRecipe } from '../node/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { type DeliveredPair, startDeliveredPair } from './delivered-pair.ts';

// Sealed Secrets on the cluster of an agent: its own controller as a pod, the SealedSecret in Git, the Application on the hub.
// SEALED_SECRETS_BIN=<file>, KUBESEAL_BIN=<file> and SEALED_SECRETS_SOURCE=<folder> are its controller, its command and its CRD.

const {
  SEALED_SECRETS_BIN: executable = '',
  KUBESEAL_BIN: kubeseal = '',
  SEALED_SECRETS_SOURCE: source = '',
} = process.env;
const image = 'docker.io/bitnami/sealed-secrets-controller';
const system = 'kube-system';
const name = 'sealed-secrets-controller';
const plain = 'correct horse battery staple';

let fleet: DeliveredPair;
let pair: DeliveredPair['pair'];

const controllerImage: ImageRecipe = ({ address }) => ({
  user: { name: 'controller', uid: 1001, gid: 1001 },
  entrypoint: ['controller'],
  files: {
    '/opt/controller': { from: executable },
    '/usr/local/bin/controller': {
      script: `exec /opt/controller "$@" --listen-addr=${address}:8080 --listen-metrics-addr=${address}:8081`,
    },
  },
});

beforeAll(async () => {
  fleet = await startDeliveredPair({ namespaces: ['shop'], images: { [image]: controllerImage } });
  pair = fleet.pair;
  await installCrds(pair.managed.client, await readCrds(join(source, 'helm/sealed-secrets/crds')));
  await runController();
}, 600_000);
afterAll(() => fleet?.stop());
beforeEach(() => onTestFailed(async () => console.error(await fleet.troubles())));

async function runController(): Promise<void> {
  const { client } = pair.managed;
  const labels = { name };
  await client.create(serviceAccounts, { metadata: { namespace: system, name } });
  await client.create(clusterRoleBindings, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace: system, name }],
  } as never);
  await client.create(deployments, {
    metadata: { namespace: system, name },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { serviceAccountName: name, containers: [{ name, image: `${image}:latest` }] },
      },
    },
  } as never);
}

/** The certificate with which everybody may seal for the cluster; its key never leaves it. */
function sealingCertificate(): Promise<string> {
  return until(
    'the sealing key',
    async () => {
      const found = (await pair.managed.client.list(secrets, { namespace: system })).find(
        ({ metadata }) => metadata.labels?.['sealedsecrets.bitnami.com/sealed-secrets-key'] === 'active',
      );
      return found && Buffer.from(found.data?.['tls.crt'] ?? '', 'base64').toString();
    },
    { timeoutMs: 240_000 },
  );
}

/** A Secret, sealed by the command: what goes into Git. */
async function seal(data: Record<string, string>): Promise<string> {
  const file = join(fleet.folder, 'sealing.pem');
  await writeFile(file, await sealingCertificate());
  const child = spawn(kubeseal, ['--cert', file, '--format', 'yaml'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let sealed = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    sealed += chunk;
  });
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'door' }, stringData: data };
  child.stdin.end(JSON.stringify(secret));
  const [code] = (await once(child, 'close')) as [number];
  expect(code).toBe(0);
  return sealed;
}

describe("Sealed Secrets' own controller", { tags: 'sealed-secrets' }, () => {
  test('a SealedSecret of Git is a Secret on the cluster; the hub shows it healthy, and never has what is in it', async () => {
    const sealed = await seal({ password: plain });
    expect(sealed).not.toContain(plain);
    await fleet.git.commit('shop', { 'door.yaml': sealed }, 'A door');
    const key = { namespace: pair.name, name: 'shop' };
    await pair.hub.client.create(fleetApplications, {
      metadata: key,
      spec: {
        project: 'default',
        source: { repoURL: fleet.git.url('shop'), path: '.', targetRevision: 'main' },
        destination: { name: 'in-cluster', namespace: 'shop' },
        syncPolicy: { automated: {} },
      },
    });
    const { client } = pair.managed;
    const opened = (text: string) =>
      waitForObject(
        client,
        secrets,
        { namespace: 'shop', name: 'door' },
        (found) => Buffer.from(found?.data?.password ?? '', 'base64').toString() === text,
      );
    await opened(plain);
    await waitForObject(pair.hub.client, fleetApplications, key, isSyncedAndHealthy);
    const application = await pair.hub.client.get(fleetApplications, key);
    expect(application?.status?.resources).toMatchObject([{ kind: 'SealedSecret', name: 'door', status: 'Synced' }]);

    await fleet.git.commit('shop', { 'door.yaml': await seal({ password: `${plain}!` }) }, 'Another lock');
    const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };
    await pair.hub.client.mergePatch(fleetApplications, key, refresh);
    await opened(`${plain}!`);
    const everything = [await pair.hub.client.list(secrets), await pair.hub.client.list(fleetApplications)];
    const text = JSON.stringify(everything);
    for (const secret of [plain, `${plain}!`]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('base64'));
    }
  }, 600_000);
});
