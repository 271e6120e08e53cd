import { expect, test } from 'vitest';
import type { Informer, InformerHandler, Secret } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { MappedAgents } from './mapped-agents.ts';

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

test('defect 29: an agent stays mapped until its last Secret is gone', () => {
  const { agents, heard, handler } = start();
  handler().added?.(secret('a', 'one'), false);
  handler().added?.(secret('b', 'one'), false);
  handler().deleted?.(secret('a', 'one'));
  expect([heard, agents.has('one')]).toEqual([['+one'], true]);
  handler().deleted?.(secret('b', 'one'));
  expect([heard, agents.has('one')]).toEqual([['+one', '-one'], false]);
});

test('defect 29: a changed label moves the mapping', () => {
  const { heard, handler } = start();
  handler().added?.(secret('a', 'one'), false);
  handler().updated?.(secret('a', 'one'), secret('a', 'two'));
  handler().updated?.(secret('a', 'two'), secret('a'));
  expect(heard).toEqual(['+one', '+two', '-one', '-two']);
});

const described = (server: string, mode?: string): Secret => {
  const plain = secret('a', 'one');
  const annotations = mode === undefined ? {} : { 'argocd-agent.argoproj-labs.io/agent-mode': mode };
  return {
    ...plain,
    metadata: { ...plain.metadata, annotations },
    data: { server: Buffer.from(server).toString('base64') },
  };
};

test('server and mode of a cluster Secret are known, and changes are reported', () => {
  const { agents, handler } = start();
  const changed: string[] = [];
  agents.subscribe({ changed: (agent) => changed.push(agent) });
  handler().added?.(described('https://proxy?agentName=one/'), false);
  expect(agents.clustersOf('one')).toEqual([expect.objectContaining({ server: 'https://proxy?agentName=one' })]);
  handler().updated?.(described('https://proxy?agentName=one/'), described('https://proxy?agentName=one'));
  expect(changed).toHaveLength(1);
  handler().updated?.(described('https://proxy'), described('https://other', 'autonomous'));
  expect(agents.clustersOf('one')[0]).toMatchObject({ server: 'https://other', mode: 'autonomous' });
  handler().updated?.(described('https://other', 'autonomous'), described('https://other', 'sometimes'));
  expect(agents.clustersOf('one')[0]?.mode).toBeUndefined();
  handler().deleted?.(described('https://other'));
  expect([changed.length, agents.clustersOf('one')]).toEqual([4, []]);
});

test("every write of an agent's Secret is told, also of one that says the same", () => {
  const { agents, handler } = start();
  const written: string[] = [];
  agents.subscribe({ written: (agent) => written.push(agent) });
  handler().added?.(secret('a', 'one'), false);
  handler().updated?.(secret('a', 'one'), secret('a', 'one'));
  handler().updated?.(secret('a', 'one'), secret('a', 'two'));
  handler().deleted?.(secret('a', 'two'));
  handler().added?.(secret('b', 'three', 'repository'), false);
  expect(written).toEqual(['one', 'one', 'two']);
});
