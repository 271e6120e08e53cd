import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { KubeObject } from '../types.ts';
import { cacheCaughtUp } from './caught-up.ts';

const object = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { namespace: 'ns', name, resourceVersion },
});

/** A cache that gets what a test gives it, and who follows it. */
class GivenCache {
  readonly #objects = new Map<string, KubeObject>();
  #handler: Parameters<Parameters<typeof cacheCaughtUp>[0]['follow']>[0] | undefined;

  get({ name }: { readonly name: string }): KubeObject | undefined {
    return this.#objects.get(name);
  }

  list(): KubeObject[] {
    return [...this.#objects.values()];
  }

  follow(handler: Parameters<Parameters<typeof cacheCaughtUp>[0]['follow']>[0]): () => void {
    this.#handler = handler;
    return () => {
      this.#handler = undefined;
    };
  }

  put(now: KubeObject): void {
    const old = this.#objects.get(now.metadata.name);
    this.#objects.set(now.metadata.name, now);
    if (old === undefined) {
      this.#handler?.added(now);
    } else {
      this.#handler?.updated(old, now);
    }
  }

  remove(name: string): void {
    const last = this.#objects.get(name) as KubeObject;
    this.#objects.delete(name);
    this.#handler?.deleted(last);
  }
}

test('what was made and deleted before the list is waited for when it appears meanwhile', async () => {
  const cache = new GivenCache();
  cache.put(object('a', '1'));
  const list = async () => ({ items: [object('a', '5')], resourceVersion: '5', continue: undefined });
  let isCaughtUp = false;
  const waiting = cacheCaughtUp(cache, list, new AbortController().signal).then(() => {
    isCaughtUp = true;
  });
  await setImmediate();
  cache.put(object('short-lived', '3'));
  cache.put(object('newer', '6'));
  cache.put(object('a', '5'));
  await setImmediate();
  expect(isCaughtUp).toBe(false);
  cache.remove('short-lived');
  await waiting;
});
