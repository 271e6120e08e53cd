import { beforeEach, expect, test } from 'vitest';
import { AgentIntroductions } from './introductions.ts';

const request = { method: 'mtls', credentials: {}, mode: 'managed', version: '1', agentNamespace: 'argocd' } as const;

let mapped: Set<string>;
let introductions: AgentIntroductions;
beforeEach(() => {
  mapped = new Set(['edge']);
  introductions = new AgentIntroductions((agent) => mapped.has(agent));
});

test('an agent is known by its last login, until it loses its cluster Secret', () => {
  introductions.record({ agent: 'edge' }, request);
  introductions.record({ agent: 'edge' }, { ...request, version: '2'.repeat(500) });
  expect(introductions.of('edge')).toEqual({ version: '2'.repeat(128), namespace: 'argocd' });
  introductions.forget('edge');
  expect(introductions.of('edge')).toBeUndefined();
});

test('an agent without a cluster Secret is not known, but may get one while it is connected', () => {
  introductions.record({ agent: 'new' }, request);
  expect(introductions.of('new')).toBeUndefined();
  mapped.add('new');
  expect(introductions.of('new')).toMatchObject({ version: '1' });
  mapped.delete('new');
  introductions.forget('new');
  mapped.add('new');
  expect(introductions.of('new')).toBeUndefined();
});

test('of those without a cluster Secret the last thousand are kept, and none of the others makes room', () => {
  introductions.record({ agent: 'edge' }, request);
  for (let count = 0; count < 1_001; count++) {
    introductions.record({ agent: `stranger-${count}` }, request);
  }
  for (const name of ['stranger-0', 'stranger-1', 'stranger-1000']) {
    mapped.add(name);
  }
  expect(introductions.of('stranger-0')).toBeUndefined();
  expect(introductions.of('stranger-1')).toBeDefined();
  expect(introductions.of('stranger-1000')).toBeDefined();
  expect(introductions.of('edge')).toBeDefined();
});
