import { expect, test } from 'vitest';
import { ApiError, type KubeClient } from '../lib/kube/index.ts';
import { createLogger, parseFlags } from '../lib/ops/index.ts';
import { principalFlags } from './flags.ts';
import { hubNamespaceCreator, namespaceCreation } from './namespaces.ts';

const logger = createLogger({ level: 'fatal' });
const signal = new AbortController().signal;

function read(...args: string[]) {
  return namespaceCreation(parseFlags(principalFlags, { args, env: {} }).values);
}

function creator(client: KubeClient, ...args: string[]) {
  const creation = read('--namespace-create-enable', ...args);
  if (creation === undefined) {
    throw new Error('nothing would be created');
  }
  return hubNamespaceCreator(client, creation, logger);
}

function cluster(existing: string[], refuse?: Error) {
  const created: unknown[] = [];
  const client = {
    get: async (_: unknown, { name }: { name: string }) =>
      existing.includes(name) ? { metadata: { name } } : undefined,
    create: async (_: unknown, object: unknown) => {
      if (refuse) {
        throw refuse;
      }
      created.push(object);
      return object;
    },
  } as unknown as KubeClient;
  return { client, created };
}

test('nothing is created unless it is asked for', () => {
  expect(read('--namespace-create-pattern=.*')).toBeUndefined();
});

test('a missing namespace is created with the labels, an existing one is left alone', async () => {
  const { client, created } = cluster(['there']);
  const create = creator(client, '--namespace-create-labels=a/b=c,team=x=y');
  await create('there', signal);
  await create('new', signal);
  expect(created).toEqual([{ metadata: { name: 'new', labels: { 'a/b': 'c', team: 'x=y' } } }]);
});

test('the pattern is one of Go and may match anywhere', async () => {
  const { client, created } = cluster([]);
  const create = creator(client, '--namespace-create-pattern=(?i)EDGE-[[:digit:]]');
  await create('my-edge-1', signal);
  await expect(create('edge-x', signal)).rejects.toThrow(/--namespace-create-pattern/);
  expect(created).toEqual([{ metadata: { name: 'my-edge-1' } }]);
});

test('a namespace that another program creates in between is not a failure; a refusal is', async () => {
  const status = (code: number, reason: string) => new ApiError({ status: code, reason, message: reason });
  await creator(cluster([], status(409, 'AlreadyExists')).client)('a', signal);
  const refused = creator(cluster([], status(403, 'Forbidden')).client)('a', signal);
  await expect(refused).rejects.toThrow('Forbidden');
});

test('an empty list of labels is none; bad values are named', () => {
  expect(read('--namespace-create-enable', '--namespace-create-labels=')?.labels).toEqual({});
  expect(() => read('--namespace-create-labels=a')).toThrow(/--namespace-create-labels.*"a" is not key=value/);
  expect(() => read('--namespace-create-labels=a=')).toThrow(/not key=value/);
  expect(() => read('--namespace-create-pattern=(')).toThrow(/--namespace-create-pattern.*no regular expression/);
});
