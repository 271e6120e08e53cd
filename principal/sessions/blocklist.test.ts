import { expect, test } from 'vitest';
import type { ConfigMap, Informer, InformerHandler } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { Blocklist } from './blocklist.ts';

test('follows the ConfigMap; a deleted one blocks nothing', () => {
  const blocklist = new Blocklist(createLogger({ level: 'fatal' }));
  let handler: InformerHandler<ConfigMap> = {};
  let changes = 0;
  const informer = {
    subscribe: (given: InformerHandler<ConfigMap>) => {
      handler = given;
      return () => undefined;
    },
  } as unknown as Informer<ConfigMap>;
  blocklist.follow(informer, () => changes++);
  const list = (name: string, ...keys: string[]): ConfigMap => ({
    metadata: { name },
    data: Object.fromEntries(keys.map((key) => [key, ''])),
  });
  handler.added?.(list('something-else', 'AB'), true);
  expect(blocklist.has('AB')).toBe(false);
  handler.added?.(list('argocd-agent-tls-blocklist', 'AB'), true);
  expect([blocklist.has('ab'), blocklist.has('CD')]).toEqual([true, false]);
  handler.updated?.(list('argocd-agent-tls-blocklist', 'AB'), list('argocd-agent-tls-blocklist', 'cd'));
  expect([blocklist.has('AB'), blocklist.has('CD')]).toEqual([false, true]);
  handler.deleted?.(list('argocd-agent-tls-blocklist', 'cd'));
  expect(blocklist.has('CD')).toBe(false);
  expect(changes).toBe(3);
});
