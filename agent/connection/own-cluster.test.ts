import { expect, test } from 'vitest';
import type { InformerHandler, KubeClient, ObjectKey, Secret } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { OwnCluster } from './own-cluster.ts';

const { signal } = new AbortController();
const secret = (name: string, server: string, type = 'cluster'): Secret => ({
  metadata: { namespace: 'argocd', name, labels: { 'argocd.argoproj.io/secret-type': type } },
  data: { server: Buffer.from(server).toString('base64') },
});

function start(present: Secret[], answer: () => Promise<unknown> = async () => undefined) {
  const patches: { name: string; patch: unknown }[] = [];
  let handler: InformerHandler<Secret> = {};
  const cluster = new OwnCluster({
    client: {
      mergePatch: async (_: unknown, { name }: ObjectKey, patch: object) => {
        patches.push({ name, patch });
        return answer();
      },
    } as unknown as Pick<KubeClient, 'mergePatch'>,
    secrets: {
      list: () => present,
      subscribe: (given) => {
        handler = given;
        return () => undefined;
      },
    },
    fieldManager: 'test',
    logger: createLogger({ level: 'fatal' }),
  });
  return { cluster, patches, handler: () => handler };
}

test("Argo CD's own request is written on the Secret of the own cluster, and on no other", async () => {
  const { cluster, patches } = start([
    secret('own', 'https://kubernetes.default.svc/'),
    secret('other', 'https://elsewhere.example.com'),
    secret('repository', 'https://kubernetes.default.svc', 'repository'),
  ]);
  expect(cluster.isKnown).toBe(true);
  await cluster.dropCache(signal);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(patches).toEqual([
    { name: 'own', patch: { metadata: { annotations: { 'argocd.argoproj.io/refresh': time } } } },
  ]);
});

test('requests that come while one is written, a refusal, and a Secret that comes and goes', async () => {
  const present = [secret('own', 'https://kubernetes.default.svc')];
  const written = Promise.withResolvers<void>();
  const { cluster, patches, handler } = start(present, () => written.promise);
  const running = [cluster.dropCache(signal), cluster.dropCache(signal)];
  written.reject(new Error('forbidden'));
  await Promise.all(running);
  expect(patches).toHaveLength(1);
  let calls = 0;
  cluster.onChanged(() => calls++);
  present.pop();
  handler().deleted?.(secret('own', 'https://kubernetes.default.svc'));
  expect([calls, cluster.isKnown]).toEqual([1, false]);
  await cluster.dropCache(signal);
  expect(patches).toHaveLength(1);
});
