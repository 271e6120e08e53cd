import { expect, test } from 'vitest';
import { aborted } from '../../lib/base/index.ts';
import type { Lease } from '../../lib/kube/index.ts';
import { SharedRole, type SharedRoleOptions } from './hub-role.ts';

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
