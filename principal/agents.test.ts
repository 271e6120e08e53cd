import { expect, test } from 'vitest';
import type { Informer, InformerHandler, Secret } from '../lib/kube/index.ts';
import { createLogger } from '../lib/ops/index.ts';
import { MappedAgents } from './agents.ts';

function start() {
  const agents = new MappedAgents(createLogger({ level: 'fatal' }));
  let handler: InformerHandler<Secret> = {};
  agents.follow({
    subscribe: (given: InformerHandler<Secret>) => {
      handler = given;
      return () => undefined;
    },
  } as unknown as Informer<Secret>);
  const heard: string[] = [];
  agents.subscribe({ mapped: (agent) => heard.push(`+${agent}`), unmapped: (agent) => heard.push(`-${agent}`) });
  return { agents, heard, handler: () => handler };
}

const secret = (name: string, agent?: string, type = 'cluster'): Secret => ({
  metadata: {
    name,
    labels: {
      'argocd.argoproj.io/secret-type': type,
      ...(agent === undefined ? {} : { 'argocd-agent.argoproj-labs.io/agent-name': agent }),
    },
  },
});

test('cluster Secrets with an agent name map, others do not', () => {
  const { agents, heard, handler } = start();
  handler().added?.(secret('a', 'one'), true);
  handler().added?.(secret('b', 'two', 'repository'), true);
  handler().added?.(secret('c'), true);
  expect([heard, agents.names()]).toEqual([['+one'], ['one']]);
});

test('an agent stays mapped until its last Secret is gone', () => {
  const { agents, heard, handler } = start();
  handler().added?.(secret('a', 'one'), false);
  handler().added?.(secret('b', 'one'), false);
  handler().deleted?.(secret('a', 'one'));
  expect([heard, agents.has('one')]).toEqual([['+one'], true]);
  handler().deleted?.(secret('b', 'one'));
  expect([heard, agents.has('one')]).toEqual([['+one', '-one'], false]);
});

test('a changed label moves the mapping', () => {
  const { heard, handler } = start();
  handler().added?.(secret('a', 'one'), false);
  handler().updated?.(secret('a', 'one'), secret('a', 'two'));
  handler().updated?.(secret('a', 'two'), secret('a'));
  expect(heard).toEqual(['+one', '+two', '-one', '-two']);
});
