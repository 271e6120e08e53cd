import { expect, test } from 'vitest';
import type { GitOpsCluster } from './resources.ts';
import { parseGitOpsCluster } from './spec.ts';

const goc = (addOn: object | undefined, placementRef: object | undefined = { kind: 'Placement', name: 'p' }) =>
  ({
    metadata: { namespace: 'argocd', name: 'fleet' },
    spec: { ...(placementRef ? { placementRef } : {}), ...(addOn ? { argoCDAgentAddon: addOn } : {}) },
  }) as GitOpsCluster;

test('defaults are those of the original', () => {
  expect(parseGitOpsCluster(goc({}))).toEqual({
    placement: { value: 'p' },
    server: { value: { address: '', port: '' } },
    addOn: {
      value: { mode: 'managed', agentNamespace: undefined, argoCD: 'Install', clientCertificate: 'Generated' },
    },
  });
  expect(parseGitOpsCluster(goc({ argoCDCRManifestWork: { manifests: [] } })).addOn.value?.argoCD).toBe('Operator');
  expect(parseGitOpsCluster(goc({ mode: '' })).addOn.value?.mode).toBe('managed');
  expect(parseGitOpsCluster(goc(undefined)).addOn.value?.mode).toBe('managed');
});

test.each([
  [{ mode: 'fancy' }, 'addOn', 'spec.argoCDAgentAddon.mode must be managed or autonomous, not "fancy"'],
  [
    { principalServerPort: '70000' },
    'server',
    'spec.argoCDAgentAddon.principalServerPort must be a port from 1 to 65535, not "70000"',
  ],
  [{ principalServerPort: 443 }, 'server', 'spec.argoCDAgentAddon.principalServerPort must be a text, not 443'],
  [{ principalServerPort: 'https' }, 'server', 'must be a port from 1 to 65535, not "https"'],
  [
    { principalServerAddress: 'https://a.b' },
    'server',
    'must be a host name or an IP address without port, not "https://a.b"',
  ],
  [{ principalServerAddress: 'a.b:443' }, 'server', 'spec.argoCDAgentAddon.principalServerAddress must be'],
  [{ agentNamespace: 'Argo_CD' }, 'addOn', "spec.argoCDAgentAddon.agentNamespace must be a namespace's name"],
  [{ argoCD: 'Maybe' }, 'addOn', 'spec.argoCDAgentAddon.argoCD must be Install or Existing or Operator, not "Maybe"'],
  [{ clientCertificate: true }, 'addOn', 'spec.argoCDAgentAddon.clientCertificate must be Generated or CSR, not true'],
] as const)('%j is refused by name', (addOn, part, message) => {
  const parsed = parseGitOpsCluster(goc(addOn));
  expect(parsed[part].problem).toMatch(/^GitOpsCluster argocd\/fleet: /);
  expect(parsed[part].problem).toContain(message);
  expect(parsed.placement).toEqual({ value: 'p' });
});

test.each([
  [{ kind: 'ManagedCluster', name: 'p' }, 'spec.placementRef.kind must be "Placement", not "ManagedCluster"'],
  [{ kind: 'Placement', name: '' }, 'spec.placementRef.name must name a Placement'],
  [{ name: 'p' }, 'spec.placementRef.kind must be "Placement", not nothing'],
  ['p', 'spec.placementRef must name a Placement'],
])('the reference %j is refused by name', (reference, message) => {
  expect(parseGitOpsCluster(goc({}, reference as object)).placement.problem).toBe(
    `GitOpsCluster argocd/fleet: ${message}`,
  );
});

test('addresses of every kind are taken', () => {
  for (const principalServerAddress of ['a.example.com', '10.0.0.1', '2001:db8::1', 'localhost', 'A-b.c.']) {
    expect(parseGitOpsCluster(goc({ principalServerAddress })).server.value?.address).toBe(principalServerAddress);
  }
});
