import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { configHash } from './config-status.ts';

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
