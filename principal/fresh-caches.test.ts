import { expect, test } from 'vitest';
import { freshCaches } from './fresh-caches.ts';

interface Asked {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly answer: PromiseWithResolvers<void>;
}

/** Caches that are asked whether they have caught up, and answer when told. */
function askedCaches(mapping: 'namespace' | 'destination') {
  const asked: Asked[] = [];
  const cache = (name: string) => ({
    caughtUp: (_signal: AbortSignal, namespace?: string) => {
      const answer = Promise.withResolvers<void>();
      asked.push({ name, namespace, answer });
      return answer.promise;
    },
  });
  const caches = {
    Applications: cache('Applications'),
    AppProjects: cache('AppProjects'),
    'all AppProjects': cache('all AppProjects'),
    'Argo CD settings': cache('Argo CD settings'),
    Secrets: cache('Secrets'),
    'GPG keys': cache('GPG keys'),
  };
  const fresh = freshCaches(caches, { mapping, signal: new AbortController().signal });
  const of = (name: string) => asked.filter((one) => one.name === name);
  return { fresh, asked, of };
}

const signal = new AbortController().signal;
const turns = () => new Promise((resolve) => setImmediate(resolve));
const answerAll = async (asked: readonly Asked[]) => {
  for (const { answer } of asked) {
    answer.resolve();
  }
  await turns();
};

test('of Applications an agent waits for its own, and all agents share the rest', async () => {
  const { fresh, asked, of } = askedCaches('namespace');
  const done: string[] = [];
  for (const agent of ['a', 'b', 'c']) {
    void fresh(agent, signal).then(() => done.push(agent));
  }
  expect(of('Applications').map(({ namespace }) => namespace)).toEqual(['a', 'b', 'c']);
  expect(of('Secrets')).toHaveLength(1);
  const others = () => asked.filter(({ name }) => name !== 'Applications');
  await answerAll([...of('Applications'), ...others()]);
  // The second list is for those that came while the first was under way.
  expect(done).toEqual(['a']);
  expect(of('Secrets')).toHaveLength(2);
  await answerAll(others());
  expect(done).toEqual(['a', 'b', 'c']);
  expect(of('Secrets')).toHaveLength(2);
});

test('with destination-based mapping the Applications of all namespaces are asked for, and shared', async () => {
  const { fresh, asked, of } = askedCaches('destination');
  const all = ['a', 'b', 'c'].map((agent) => fresh(agent, signal));
  expect(of('Applications').map(({ namespace }) => namespace)).toEqual([undefined]);
  await answerAll([...asked]);
  await answerAll([...asked]);
  await Promise.all(all);
  expect(of('Applications')).toHaveLength(2);
});

test('a failure is told to those that waited for it, and the others go on', async () => {
  const { fresh, asked, of } = askedCaches('namespace');
  const first = expect(fresh('a', signal)).rejects.toThrow('the API server is away');
  const second = fresh('b', signal);
  of('Secrets')[0]?.answer.reject(new Error('the API server is away'));
  await first;
  await answerAll([...asked]);
  await answerAll([...asked]);
  await second;
});

test('a caller that gives up leaves the others waiting', async () => {
  const { fresh, asked } = askedCaches('namespace');
  const stop = new AbortController();
  const given = expect(fresh('a', stop.signal)).rejects.toThrow('enough');
  const other = fresh('b', signal);
  stop.abort(new Error('enough'));
  await given;
  await answerAll([...asked]);
  await answerAll([...asked]);
  await other;
});
