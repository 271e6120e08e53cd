import { expect, test } from 'vitest';
import { createAuthority } from '../../lib/pki/index.ts';
import { type GitOpsCluster, problemsOf } from '../hub/index.ts';
import { clusterSettingsSchema, mergeSettings } from './cluster-settings.ts';
import { isComparable, isVersion } from './release.ts';
import { parseGitOpsCluster } from './spec.ts';

const problemIn = (input: unknown) => {
  const { error } = clusterSettingsSchema.safeParse(input);
  return error === undefined ? undefined : problemsOf(error);
};
const addOnOf = (argoCDAgentAddon: object) =>
  parseGitOpsCluster({
    metadata: { namespace: 'argocd', name: 'fleet' },
    spec: { placementRef: { kind: 'Placement', name: 'p' }, argoCDAgentAddon },
  } as GitOpsCluster).addOn;

test('settings that Argo CD knows are taken as they are', async () => {
  const { certificate } = await createAuthority({ commonName: 'git' } as never);
  const settings = {
    config: {
      'resource.customizations.health.example.com_Thing': 'hs = {}\nhs.token = obj.status.token\nreturn hs',
      'kustomize.buildOptions': '--enable-helm',
      'accounts.alice': 'apiKey, login',
      'oidc.config': 'clientID: a\nclientSecret: $oidc:secret\n',
      url: 'https://argocd.example.com:8443/path@1',
    },
    params: {
      'repo.server': 'hub.example.com:8081',
      'controller.status.processors': '50',
      'redis.sentinel.hosts': 'sentinel:26379',
    },
    tlsCertificates: { 'git.example.com': certificate },
    sshKnownHosts: '# ours\ngit.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n',
    plugins: {
      vault: {
        spec: { generate: { command: ['vault'] } },
        env: [{ name: 'VAULT_TOKEN', valueFrom: { secretKeyRef: { name: 'vault', key: 'token' } } }],
      },
    },
    replicas: { applicationController: 2, repoServer: 0 },
    agentParams: {
      'agent.log.level': 'debug',
      'agent.label-selector': 'team=a',
      'agent.redis.address': 'haproxy:6379',
    },
  };
  expect(problemIn(settings)).toBeUndefined();
  expect(clusterSettingsSchema.parse(settings)).toEqual(settings);
});

test.each([
  [{ config: { 'admin.password': 'x' } }, 'config.admin.password looks like a credential'],
  [{ config: { 'webhook.github.secret': 'x' } }, 'config.webhook.github.secret looks like a credential'],
  [{ config: { 'dex.config': 'connectors:\n- config:\n    clientSecret: abc' } }, 'contains a credential'],
  [{ config: { url: 'https://me:pw@example.com' } }, 'contains an address with a password'],
  [{ params: { 'otlp.headers': 'authorization=Bearer x' } }, 'contains a credential'],
  [{ params: { x: `ghp_${'a'.repeat(36)}` } }, 'contains a token'],
  [{ tlsCertificates: { 'git.example.com': '-----BEGIN RSA PRIVATE KEY-----' } }, 'contains a private key'],
  [{ tlsCertificates: { 'git.example.com': 'x' } }, 'must be certificates in PEM'],
  [
    { tlsCertificates: { h: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' } },
    'has a certificate that cannot be read',
  ],
  [{ tlsCertificates: { 'https://git.example.com': 'x' } }, 'is no host name; write it without scheme and port'],
  [{ sshKnownHosts: 'git.example.com' }, 'must have lines as ssh-keyscan prints them'],
  [{ plugins: { Vault: { spec: { generate: { command: ['x'] } } } } }, 'is no name of a container'],
  [{ plugins: { vault: { spec: {} } } }, 'plugins.vault.spec.generate must have the command'],
  [
    { plugins: { v: { spec: { generate: { command: ['x'] } }, env: [{ name: 'VAULT_TOKEN', value: 'x' }] } } },
    'use valueFrom.secretKeyRef',
  ],
  [{ config: { 'a b': 'x' } }, 'is no key of a ConfigMap'],
  [{ config: { a: true } }, 'config.a must be a text (in quotes), not true'],
  [{ params: { 'repo.server': 'hub; rm -rf /:1' } }, 'params.repo.server must be <host>:<port>'],
  [{ replicas: { applicationController: 0 } }, 'replicas.applicationController must be at least 1'],
  [{ replicas: { controller: 1 } }, 'replicas has no field controller'],
  [{ parms: {} }, 'has no field parms'],
  [
    { agentParams: { 'agent.server.address': 'x' } },
    'agentParams.agent.server.address is determined by the controller; set spec.argoCDAgentAddon.principalServerAddress',
  ],
  [
    { params: { 'redis.sentinel.hosts': 's:26379', 'redis.sentinel.master': 'm' } },
    'params.redis.sentinel.hosts needs agentParams.agent.redis.address, since the agent does not ask Sentinels',
  ],
  [{ agentParams: { 'agent.creds': 'userpass:x' } }, 'agentParams.agent.creds is determined by the controller'],
  [{ config: { a: 'x'.repeat(70_000) } }, 'must have at most 64 KiB'],
])('what cannot be right is refused, without the value: %j', (input, problem) => {
  expect(problemIn(input)).toContain(problem);
  expect(problemIn(input)).not.toContain('Bearer');
});

test("settings of a GitOpsCluster come before the controller's, key by key, in one order", () => {
  const base = { config: { b: '1', a: '1' }, sshKnownHosts: 'x', replicas: { repoServer: 2 } };
  const merged = mergeSettings(base, { config: { a: '2' }, replicas: { applicationController: 3 } });
  expect(merged).toEqual({
    config: { a: '2', b: '1' },
    sshKnownHosts: 'x',
    replicas: { applicationController: 3, repoServer: 2 },
  });
  expect(mergeSettings({ config: {} }, undefined)).toBeUndefined();
});

test('settings are a part of the version, which rollouts bring step by step', () => {
  const before = { agent: 'a' };
  const after = { agent: 'a', settings: { config: { a: '1' }, params: { b: '1' } } };
  expect(isComparable(before, after)).toBe(true);
  expect(isVersion(before, after)).toBe(false);
  const reordered = { params: { b: '1' }, config: { a: '1' } };
  expect(isVersion({ settings: reordered, agent: 'a' }, after)).toBe(true);
});

test('only the Argo CD that the controller delivers takes settings, and every agent that it delivers', () => {
  const config = { a: 'b' };
  expect(addOnOf({ argoCD: 'Existing', clusterSettings: { agentParams: { a: 'b' } } }).problem).toBeUndefined();
  expect(addOnOf({ argoCD: 'Existing', clusterSettings: { config } }).problem).toContain(
    'spec.argoCDAgentAddon.clusterSettings has config, but with argoCD: Existing',
  );
  expect(addOnOf({ argoCD: 'Operator', clusterSettings: { config } }).problem).toContain('is not for argoCD: Operator');
});
