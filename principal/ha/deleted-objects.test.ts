import { expect, onTestFinished, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { applyMergePatch } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { ApiError, type ConfigMap } from '../../lib/kube/index.ts';
import { DeletedObjects, type DeletedObjectsOptions, forgetDeletedObjects } from './deleted-objects.ts';

const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A hub's one ConfigMap, by the rules of an API server. */
class Hub {
  found: ConfigMap | undefined;
  writes = 0;
  isAway = false;
  isForbidden = false;
  #versions = 0;

  readonly client = {
    get: async () => this.#answer(() => this.found),
    create: async (_: unknown, made: ConfigMap) =>
      this.#answer(() => {
        if (this.found !== undefined) {
          throw new ApiError({ status: 409, reason: 'AlreadyExists', message: 'it exists' });
        }
        return this.#stored(made);
      }),
    mergePatch: async (_: unknown, __: unknown, patch: { metadata?: { resourceVersion?: string } }) =>
      this.#answer(() => {
        const { resourceVersion } = this.found?.metadata ?? {};
        if ((patch.metadata?.resourceVersion ?? resourceVersion) !== resourceVersion) {
          throw new ApiError({ status: 409, reason: 'Conflict', message: 'it has changed' });
        }
        this.writes++;
        return this.#stored(applyMergePatch(this.found, patch) as ConfigMap);
      }),
  };

  /** A hub that becomes active after the other one. */
  async promoted(isPromoting = async () => true): Promise<void> {
    await forgetDeletedObjects(this.client as never, 'argocd', isPromoting, new AbortController().signal);
  }

  principal(): DeletedObjects {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const client = this.client as unknown as DeletedObjectsOptions['client'];
    return new DeletedObjects({ client, namespace: 'argocd', logger, signal: stop.signal });
  }

  #stored(next: ConfigMap): ConfigMap {
    this.found = { ...next, metadata: { ...next.metadata, resourceVersion: `${++this.#versions}` } };
    return this.found;
  }

  #answer<T>(answer: () => T): T {
    if (this.isAway) {
      throw new Error('connection refused');
    }
    if (this.isForbidden) {
      throw new ApiError({ status: 403, reason: 'Forbidden', message: 'no' });
    }
    return answer();
  }
}

test('a principal that starts later knows what was deleted, also while the API server was away', async () => {
  const hub = new Hub();
  await hub.promoted();
  const first = hub.principal();
  first.add('Application/a/web');
  hub.isAway = true;
  first.add('Application/a/shop');
  hub.isAway = false;
  await until(() => Object.keys(hub.found?.data ?? {}).length === 2);
  const isDeleted = await hub.principal().read();
  expect(['web', 'shop', 'other'].map((name) => isDeleted(`Application/a/${name}`))).toEqual([true, true, false]);
});

test('nothing is written when a standby has followed, and the next promotion begins anew', async () => {
  const hub = new Hub();
  await hub.promoted();
  const first = hub.principal();
  first.add('Application/a/web');
  await until(() => hub.writes === 1);
  first.followed();
  await until(() => hub.found?.metadata.annotations?.[annotations.isFollowed] === 'true');
  const other = hub.principal();
  other.add('Application/a/shop');
  first.add('Application/a/shop');
  await until(async () => (await other.read())('Application/a/shop'));
  expect(Object.keys(hub.found?.data ?? {})).toHaveLength(1);
  await hub.promoted();
  expect(hub.found?.data).toBeUndefined();
  expect(hub.found?.metadata.annotations).toEqual({});
});

test('a principal that is late to promote its hub forgets nothing that another one has recorded since', async () => {
  const hub = new Hub();
  await hub.promoted();
  const active = hub.principal();
  const recorded = async (name: string) => {
    active.add(`Application/a/${name}`);
    await until(async () => (await hub.principal().read())(`Application/a/${name}`));
  };
  await recorded('web');
  await hub.promoted(async () => false);
  expect((await hub.principal().read())('Application/a/web')).toBe(true);
  let asked = 0;
  await hub.promoted(async () => {
    await recorded('shop');
    return asked++ === 0;
  });
  expect(asked).toBe(2);
  expect((await hub.principal().read())('Application/a/shop')).toBe(true);
});

test('what cannot be read is not known, but what a chart does not grant was never recorded', async () => {
  const hub = new Hub();
  const principal = hub.principal();
  principal.add('Application/a/web');
  hub.isAway = true;
  await expect(principal.read()).rejects.toThrow(/connection refused/);
  hub.isAway = false;
  hub.isForbidden = true;
  const isDeleted = await principal.read();
  expect(['web', 'shop'].map((name) => isDeleted(`Application/a/${name}`))).toEqual([true, false]);
});

test('a hub that was never promoted records nothing: the other one has not been active', async () => {
  const hub = new Hub();
  const principal = hub.principal();
  principal.add('Application/a/web');
  principal.followed();
  expect((await principal.read())('Application/a/web')).toBe(true);
  expect(hub.found).toBeUndefined();
});
