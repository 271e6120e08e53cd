import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import {
  configMaps,
  type KubeClient,
  namespaces,
  roleBindings,
  roles,
  type Secret,
  secrets,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { inspectCertificate, issueCertificate, secretText } from '../../lib/pki/index.ts';
import { type FleetApplication, fleetApplications, isSyncedAndHealthy } from '../fleet/index.ts';
import { type PrivateGit, startPrivateGit } from '../git/index.ts';
import { namespace, type Program, put } from '../pair/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { type DeliveredPair, startDeliveredPair } from './delivered-pair.ts';
import { type ExternalSecretsObject, externalSecrets, secretStores, startExternalSecrets } from './external-secrets.ts';

// External Secrets' own controller, with its provider for Kubernetes: a namespace of the hub plays the vault. On the hub it
// makes the credentials of a private repository, which the cluster's Argo CD reads; on a cluster, the agent's certificate.

const vault = 'vault';
const repositoryKey = { namespace, name: 'shop-repository' };
const first = { username: 'fleet', password: 'correct horse' };
const second = { username: 'fleet', password: 'battery staple' };

let fleet: DeliveredPair;
let pair: DeliveredPair['pair'];
let gate: PrivateGit;
let onHub: Program;
let onCluster: Program | undefined;

beforeAll(async () => {
  fleet = await startDeliveredPair({ namespaces: ['shop'] });
  pair = fleet.pair;
  gate = await startPrivateGit(join(fleet.folder, 'git'), first);
  await pair.hub.client.create(namespaces, { metadata: { name: vault } });
  onHub = await startExternalSecrets(pair.hub);
}, 600_000);
afterAll(async () => {
  await onHub?.stop('SIGKILL');
  await onCluster?.stop('SIGKILL');
  await gate?.stop();
  await fleet?.stop();
});
beforeEach(() =>
  onTestFailed(async () => {
    const outputs = [onHub, onCluster].map((one) => one?.output.slice(-3_000));
    console.error([await fleet.troubles(), ...outputs].join('\n---\n'));
  }),
);

/** Writes what a user keeps in the vault. */
async function keep(name: string, values: Readonly<Record<string, string>>): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
  const metadata = { namespace: vault, name };
  await pair.hub.client.apply(secrets, { metadata, data }, { fieldManager: 'user', force: true });
}

/** Lets a service account of the hub read the vault. */
async function admit(account: { namespace: string; name: string }): Promise<void> {
  const { client } = pair.hub;
  const metadata = { namespace: vault, name: account.name };
  const access = { apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectrulesreviews'], verbs: ['create'] };
  await client.create(serviceAccounts, { metadata: account });
  await client.create(roles, {
    metadata,
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }, access],
  });
  await client.create(roleBindings, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
}

async function tokenOf(account: { namespace: string; name: string }): Promise<string> {
  const path = `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const response = await pair.hub.client.request(path, { method: 'POST', body });
  return (JSON.parse(await response.body.text()) as { status: { token: string } }).status.token;
}

/** The vault as a place where an ExternalSecret may get something. */
async function openVault(client: KubeClient, auth: object): Promise<void> {
  const { server: url, ca } = pair.hub;
  const kubernetes = {
    remoteNamespace: vault,
    server: { url, caBundle: Buffer.from(ca).toString('base64') },
    auth,
  };
  await client.create(secretStores, { metadata: { namespace, name: vault }, spec: { provider: { kubernetes } } });
}

const passwordOf = (secret: Secret | undefined) => secretText(secret?.data, 'password');

/** Resolves when the agent's cluster has the credentials with this password, or none. */
const hasCredentials = (password: string | undefined) =>
  waitForObject(pair.managed.client, secrets, repositoryKey, (found) => passwordOf(found) === password);

describe("External Secrets' own controller", { tags: 'external-secrets' }, () => {
  const application = { namespace: '', name: 'shop' };
  const seen = (accept: (found: FleetApplication | undefined) => boolean) =>
    waitForObject(pair.hub.client, fleetApplications, application, accept);
  const deployed = async (password: string) => {
    const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } } };
    await pair.hub.client.mergePatch(fleetApplications, application, refresh);
    await waitForObject(
      pair.managed.client,
      secrets,
      { namespace: 'shop', name: 'door' },
      (found) => passwordOf(found) === password,
    );
  };
  const door = (password: string) => ({
    'door.yaml': `apiVersion: v1\nkind: Secret\nmetadata: { name: door }\nstringData: { password: ${password} }\n`,
  });

  test('without credentials the cluster cannot read the private repository', async () => {
    application.namespace = pair.name;
    await fleet.git.commit('shop', door('one'), 'A door');
    await pair.hub.client.create(fleetApplications, {
      metadata: application,
      spec: {
        project: 'default',
        source: { repoURL: gate.url('shop'), path: '.', targetRevision: 'main' },
        destination: { name: 'in-cluster', namespace: 'shop' },
        syncPolicy: { automated: {} },
      },
    });
    const found = await seen((one) => one?.status?.conditions?.some(({ type }) => type === 'ComparisonError') ?? false);
    expect(JSON.stringify(found?.status?.conditions)).toMatch(/authentication required|authorization/i);
  }, 600_000);

  test('those that External Secrets makes on the hub reach the cluster, whose Argo CD deploys with them', async () => {
    const { client } = pair.hub;
    await keep('shop', first);
    await admit({ namespace, name: 'vault-reader' });
    await openVault(client, { serviceAccount: { name: 'vault-reader' } });
    await client.create(externalSecrets, {
      metadata: repositoryKey,
      spec: {
        refreshInterval: '1s',
        secretStoreRef: { kind: 'SecretStore', name: vault },
        target: {
          deletionPolicy: 'Delete',
          template: {
            metadata: { labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
            data: {
              type: 'git',
              project: 'default',
              url: gate.url('shop'),
              username: '{{ .username }}',
              password: '{{ .password }}',
            },
          },
        },
        dataFrom: [{ extract: { key: 'shop' } }],
      },
    });
    const copy = await hasCredentials(first.password);
    expect(copy?.metadata.ownerReferences).toBeUndefined();
    await deployed('one');
    await seen(isSyncedAndHealthy);
  }, 600_000);

  test('another password in the vault is the one that the cluster uses', async () => {
    gate.admit(second);
    await fleet.git.commit('shop', door('two'), 'Another door');
    await keep('shop', second);
    await hasCredentials(second.password);
    await deployed('two');
    await seen(isSyncedAndHealthy);
  }, 600_000);

  test('a Secret that is refreshed without a change is not sent again', async () => {
    const { hub, managed } = pair;
    const timeOf = (one: ExternalSecretsObject | undefined) => Date.parse(one?.status?.refreshTime ?? '');
    const before = await managed.client.get(secrets, repositoryKey);
    const began = timeOf(await hub.client.get(externalSecrets, repositoryKey));
    // What the first of several refreshes sent would be on the cluster at the last.
    await waitForObject(hub.client, externalSecrets, repositoryKey, (one) => timeOf(one) > began + 3_000);
    expect(await managed.client.get(secrets, repositoryKey)).toEqual(before);
  });

  test("an agent's certificate comes from the hub's vault, and is renewed without a restart", async () => {
    const { hub, managed, principal, agent, authority, name } = pair;
    const issue = async () => {
      const { certificate, key } = await issueCertificate({ authority, commonName: name, usages: ['client'] });
      await keep('agent', { 'tls.crt': certificate, 'tls.key': key });
      return inspectCertificate(certificate).fingerprint;
    };
    const made = await issue();
    const copy = await managed.client.get(secrets, repositoryKey);
    await agent.stop();
    const key = { namespace, name: 'argocd-agent-client-tls' };
    await managed.client.delete(secrets, key);
    // The cluster has a token of the hub, for what is in the vault and nothing else.
    await admit({ namespace: vault, name: 'cluster-reader' });
    await put(managed.client, 'hub-token', { token: await tokenOf({ namespace: vault, name: 'cluster-reader' }) });
    onCluster = await startExternalSecrets(managed);
    await openVault(managed.client, { token: { bearerToken: { name: 'hub-token', key: 'token' } } });
    await managed.client.create(externalSecrets, {
      metadata: key,
      spec: {
        refreshInterval: '1s',
        secretStoreRef: { kind: 'SecretStore', name: vault },
        target: { template: { type: 'kubernetes.io/tls' } },
        dataFrom: [{ extract: { key: 'agent' } }],
      },
    });
    const holds = (fingerprint: string) =>
      waitForObject(managed.client, secrets, key, (found) => {
        const text = secretText(found?.data, 'tls.crt');
        return text !== undefined && inspectCertificate(text).fingerprint === fingerprint;
      });
    await holds(made);
    const after = agent.output.length;
    agent.start();
    await agent.says(/Connected to the principal/, { after });
    const later = agent.output.length;
    await holds(await issue());
    await agent.says(/credentials changed and were reloaded.*argocd-agent-client-tls/, { after: later });
    const renewed = agent.output.length;
    // With the former certificate it would not come back.
    await hub.client.create(configMaps, {
      metadata: { namespace, name: 'argocd-agent-tls-blocklist' },
      data: { [made]: 'replaced' },
    });
    await principal.says(/open connection is ended: the client certificate is on the blocklist/);
    await agent.says(/Connected to the principal/, { after: renewed });
    // The copy has the labels of External Secrets on the hub. The one on the cluster leaves it as it is.
    expect(copy).toBeDefined();
    expect(await managed.client.get(secrets, repositoryKey)).toEqual(copy);
  }, 600_000);

  test('what is gone from the vault is gone from the hub and from the cluster', async () => {
    await pair.hub.client.delete(secrets, { namespace: vault, name: 'shop' });
    await waitForObject(pair.hub.client, secrets, repositoryKey, (found) => found === undefined);
    await waitForObject(pair.managed.client, secrets, repositoryKey, (found) => found === undefined);
  });
});
