import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { aborted } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { ConnectionError, type KubeClient, type Lease } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { SharedRole, type SharedRoleOptions } from './hub-role.ts';

const recorded = (role: string, resourceVersion: string): Lease => ({
  metadata: {
    namespace: 'ns',
    name: 'argocd-agent.hub-role',
    uid: 'u',
    resourceVersion,
    annotations: {
      [annotations.hubRole]: role,
      [annotations.preferredRole]: 'active',
      [annotations.preferredByPod]: JSON.stringify([['principal-0', 'active']]),
    },
  },
});

test('after a restore of the API server the recorded role counts, though it is of a lower version', async () => {
  const stop = new AbortController();
  let lease = recorded('standby', '1000');
  let isWatched = false;
  let broken = Promise.withResolvers<never>();
  const client = {
    get: async () => lease,
    listPage: async () => ({ items: [structuredClone(lease)], resourceVersion: lease.metadata.resourceVersion }),
    watch: async () => ({
      [Symbol.asyncIterator]: () => {
        isWatched = true;
        return { next: () => broken.promise };
      },
    }),
  } as unknown as KubeClient;
  stop.signal.addEventListener('abort', () => broken.reject(stop.signal.reason));
  const role = await SharedRole.open({
    client,
    namespace: 'ns',
    preferred: 'active',
    pod: 'principal-0',
    logger: createLogger({ level: 'fatal' }),
    signal: stop.signal,
    failed: (error) => expect.fail(String(error)),
  });
  expect(role.current).toBe('standby');
  await until(() => expect(isWatched).toBe(true));
  lease = recorded('active', '500');
  const { reject } = broken;
  broken = Promise.withResolvers();
  broken.promise.catch(() => undefined);
  reject(new ConnectionError('reset', { code: 'ECONNRESET', sent: true }));
  await until(() => expect(role.current).toBe('active'));
  stop.abort();
});

const nothing = () => undefined;

/** A hub whose Lease principals of any pod open. */
function hub() {
  let lease: Lease | undefined;
  let version = 0;
  const write = async (_type: unknown, next: Lease) => {
    lease = { ...next, metadata: { ...next.metadata, resourceVersion: String(++version) } };
    return lease;
  };
  const client = {
    get: async () => lease,
    create: write,
    replace: write,
    listPage: async (_type: unknown, { signal }: { signal: AbortSignal }) => {
      await aborted(signal);
      throw signal.reason;
    },
  } as unknown as SharedRoleOptions['client'];
  return async (preferred: SharedRoleOptions['preferred'], pod: string) => {
    const stop = new AbortController();
    const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const role = await SharedRole.open({
      client,
      namespace: 'argocd',
      preferred,
      pod,
      logger,
      signal: stop.signal,
      failed: nothing,
    });
    stop.abort();
    return role.current;
  };
}

test('a pod that restarts while another role is preferred already does not turn the role back', async () => {
  const open = hub();
  expect(await open('active', 'old')).toBe('active');
  expect(await open('standby', 'new')).toBe('standby');
  expect(await open('active', 'old'), 'it has been outvoted').toBe('standby');
  expect(await open('standby', 'new')).toBe('standby');
  expect(await open('active', 'newest'), 'somebody has changed the preference back').toBe('active');
});

test('the same process with another preference than before decides anew', async () => {
  const open = hub();
  expect(await open('active', 'host')).toBe('active');
  expect(await open('standby', 'host')).toBe('standby');
  expect(await open('active', 'host')).toBe('active');
});
