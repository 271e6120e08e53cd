import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterRoleBindings, configMaps, deployments, secrets } from '../../lib/kube/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { addonChart, helm, installCrds, ocmCrds } from './index.ts';

// The hub's Argo CD as a part of the release, while Argo CD's own server and people write, too. No node runs its pods.

const releaseNamespace = 'open-cluster-management-agent-addon';
const namespace = 'argocd';

let hub: Cluster;

async function run(command: 'install' | 'upgrade' | 'uninstall', release: string, ...args: string[]): Promise<string> {
  const chart = command === 'uninstall' ? [] : [addonChart];
  const where = ['--namespace', releaseNamespace, '--no-hooks'];
  return await helm([command, release, ...chart, ...where, ...args], { kubeconfig: hub.kubeconfig });
}

const upgrade = (...args: string[]) => run('upgrade', 'fleet', '--reset-values', ...args);

async function deploymentNames(): Promise<string[]> {
  return (await hub.client.list(deployments, { namespace })).map(({ metadata }) => metadata.name).sort();
}

beforeAll(async () => {
  hub = await startCluster();
  await installCrds(hub.client, await ocmCrds('hub'));
  await run('install', 'fleet', '--create-namespace');
});
afterAll(() => hub?.stop());

describe("Redis's password", () => {
  const key = { namespace, name: 'argocd-redis' };

  it('is left to the first pod of Redis, and an upgrade does not touch it', async () => {
    expect(await hub.client.get(secrets, key)).toBeUndefined();
    const auth = Buffer.from('made once').toString('base64');
    const made = await hub.client.create(secrets, { metadata: key, data: { auth } });
    await upgrade();
    expect(await hub.client.get(secrets, key)).toEqual(made);
  });

  it('is kept where a release of an earlier version has made it', async () => {
    const annotations = { 'meta.helm.sh/release-name': 'fleet', 'meta.helm.sh/release-namespace': releaseNamespace };
    const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
    const before = await hub.client.mergePatch(secrets, key, { metadata: { annotations, labels } });
    // With the first upgrade the Secret is in the release: Helm would delete it with the second one if that left it out.
    for (const time of ['first', 'second']) {
      await upgrade();
      expect((await hub.client.get(secrets, key))?.data, time).toEqual(before.data);
    }
  });
});

describe('SSH hosts', () => {
  const key = { namespace, name: 'argocd-ssh-known-hosts-cm' };
  const usual = readFileSync(new URL('../../templates/argocd/ssh_known_hosts', import.meta.url), 'utf8').trimEnd();
  const more = (...lines: string[]) => ['--set-string', `hubArgoCD.sshKnownHosts=${lines.join('\n')}`];
  const hosts = async () => (await hub.client.get(configMaps, key))?.data?.ssh_known_hosts;
  /** As SettingsManager.SaveSSHKnownHostsData of Argo CD does it. */
  const write = (...lines: string[]) =>
    hub.client.mergePatch(
      configMaps,
      key,
      { data: { ssh_known_hosts: `${lines.join('\n')}\n` } },
      { fieldManager: 'argocd-server' },
    );

  it('are the usual ones at first, and those of the values', async () => {
    expect(await hosts()).toBe(`${usual}\n`);
    await upgrade(...more('a ssh-rsa AAAA'));
    expect(await hosts()).toBe(`${usual}\na ssh-rsa AAAA\n`);
    await upgrade(...more('a ssh-rsa AAAA', 'b ssh-rsa BBBB'));
    expect(await hosts()).toBe(`${usual}\na ssh-rsa AAAA\nb ssh-rsa BBBB\n`);
  });

  it('are filled where an earlier version has left them empty', async () => {
    const { annotations = {}, labels = {} } = (await hub.client.get(configMaps, key))?.metadata ?? {};
    const empty = { metadata: { ...key, annotations, labels }, data: { ssh_known_hosts: '' } };
    await hub.client.apply(configMaps, empty, { fieldManager: 'helm', force: true });
    await upgrade();
    expect(await hosts()).toBe(`${usual}\n`);
  });

  it("are Argo CD's afterwards: an upgrade takes none away and does not fail", async () => {
    const lines = ['a ssh-rsa AAAA', 'c ssh-rsa CCCC'];
    await write(...lines);
    const text = await hosts();
    for (const values of [[], more('a ssh-rsa AAAA'), []]) {
      expect(await upgrade(...values)).not.toContain('SSH hosts');
      expect(await hosts()).toBe(text);
    }
    expect(await upgrade(...more('a ssh-rsa AAAA', 'd ssh-rsa DDDD'))).toMatch(
      /SSH hosts were changed in Argo CD, which keeps them from now on\. Add these lines [^:]*:\s+d ssh-rsa DDDD\n/,
    );
    expect(await hosts()).toBe(text);
  });

  it('stay none when Argo CD has none', async () => {
    await write();
    await upgrade();
    expect(await hosts()).toBe('\n');
  });
});

describe('what else Argo CD and its users write', () => {
  it.each([
    ['argocd-tls-certs-cm', { 'git.example.com': '-----BEGIN CERTIFICATE-----' }],
    ['argocd-gpg-keys-cm', { '4AEE18F83AFDEB23': 'key' }],
    ['argocd-rbac-cm', { 'policy.csv': 'g, team, role:admin' }],
    ['argocd-cm', { 'accounts.alice': 'apiKey' }],
  ])('stays in %s', async (name, data) => {
    const key = { namespace, name };
    await hub.client.mergePatch(configMaps, key, { data }, { fieldManager: 'argocd-server' });
    await upgrade();
    expect((await hub.client.get(configMaps, key))?.data).toMatchObject(data);
  });
});

describe("the role of the hub's application controller", () => {
  it('can be named later, changed, and left out again', async () => {
    const bound = async () =>
      (await hub.client.list(clusterRoleBindings))
        .filter(({ metadata }) => metadata.name.startsWith('argocd-hub-'))
        .map(({ metadata, roleRef }) => `${metadata.name} ${roleRef.name}`)
        .sort();
    for (const role of ['', 'app-of-apps', 'another', '']) {
      const path = 'hubArgoCD.applicationController';
      await upgrade('--set', `${path}.enabled=true,${path}.clusterRole=${role}`);
      const expected = ['argocd-hub-application-controller', 'argocd-hub-server'].map(
        (name) => `${name}:${role || name} ${role || name}`,
      );
      expect(await bound()).toEqual(expected);
    }
    await upgrade();
    expect(await bound()).toEqual([]);
  });
});

describe('a hub with the CRDs of an Argo CD that does not run', () => {
  beforeAll(() => run('uninstall', 'fleet'));

  it('gets none by itself, and the notes say which value leads to one', async () => {
    const notes = await run('install', 'again');
    expect(await deploymentNames()).toEqual(['argocd-agent-principal']);
    expect(notes.replaceAll(/\s+/g, ' ')).toContain(
      "Namespace argocd has no Argo CD, and this release has not installed one: hubArgoCD.install is auto, and the hub has Argo CD's CRDs from somewhere else. If an Argo CD runs in another namespace, set global.argoCDNamespace to that. If none runs, set hubArgoCD.install to true: the CRDs stay as they are.",
    );
    const refused = await run('upgrade', 'again', '--reset-values', '--set', 'hubArgoCD.install=false');
    expect(refused).toContain('Namespace argocd has no Argo CD, and this release has not installed one. If');
  });

  it('gets one with that value, which later upgrades keep', async () => {
    const notes = await run('upgrade', 'again', '--reset-values', '--set', 'hubArgoCD.install=true');
    expect(notes).not.toContain('has no Argo CD');
    expect(await deploymentNames()).toContain('argocd-server');
    await run('upgrade', 'again', '--reset-values');
    expect(await deploymentNames()).toContain('argocd-server');
  });
});
