import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ConfigScope } from './cluster-config.ts';
import { configHash, configured } from './config-status.ts';

test('the hash of a configuration does not depend on the order of its fields', () => {
  const one = {
    metadata: { name: 'x' },
    spec: { agentInstallNamespace: 'a', registries: [{ mirror: 'm', source: 's' }] },
  };
  const two = {
    metadata: { name: 'y' },
    spec: { registries: [{ source: 's', mirror: 'm' }], agentInstallNamespace: 'a' },
  };
  expect(configHash(one)).toBe(configHash(two));
  expect(configHash(one)).toMatch(/^[0-9a-f]{64}$/);
});

test('the hash of a configuration equals that of Go’s JSON', () => {
  const spec = { proxyConfig: { noProxy: 'a&b<c>' } };
  const text = '{"spec":{"proxyConfig":{"noProxy":"a\\u0026b\\u003cc\\u003e"}}}';
  const config = { apiVersion: 'v1', kind: 'AddOnDeploymentConfig', metadata: { name: 'x' }, spec };
  expect(configHash(config)).toBe(createHash('sha256').update(text).digest('hex'));
});

test('of many container IDs that match nothing ten are named', () => {
  const containerIDs = Array.from({ length: 100 }, (_, at) => `deployments:${'x'.repeat(250)}-${at}:*`);
  const spec = { resourceRequirements: containerIDs.map((containerID) => ({ containerID, resources: {} })) };
  const caches = {
    addOns: {
      get: () => ({ spec: { configs: [{ resource: 'addondeploymentconfigs', namespace: 'c1', name: 'x' }] } }),
    },
    addOnRegistrations: { list: () => [] },
    configs: { get: () => ({ metadata: { namespace: 'c1', name: 'x' }, spec }) },
    managedClusters: { get: () => undefined },
  };
  const work = {
    spec: { workload: { manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } }] } },
  };
  const { status, message } = configured({ caches, cluster: 'c1' } as unknown as ConfigScope, [work] as never);
  expect(status).toBe('True');
  expect(message).toContain(`${containerIDs[9]} and 90 more (spec.resourceRequirements)`);
  expect(message.length).toBeLessThan(32 * 1024);
});
