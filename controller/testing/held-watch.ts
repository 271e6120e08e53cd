import { abortable } from '../../lib/base/index.ts';
import type { KubeClient, ResourceType } from '../../lib/kube/index.ts';

/** A client whose watches of one kind can be held back, as on a busy API server. */
export interface HeldWatch {
  readonly client: KubeClient;
  /** From now on events of the kind wait. */
  hold(): void;
  /** Lets the events pass that have waited, and all later ones. */
  release(): void;
}

/** Wraps a client so that its watches of `held` can wait. Everything else goes through at once. */
export function heldWatch(client: KubeClient, held: ResourceType): HeldWatch {
  let gate: PromiseWithResolvers<void> | undefined;
  const watch: KubeClient['watch'] = async (type, options) => {
    const events = await client.watch(type, options);
    return type.plural === held.plural ? late(events, options.signal) : events;
  };
  async function* late<T>(
    events: AsyncGenerator<T, void, undefined>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void, undefined> {
    for await (const event of events) {
      await abortable(gate?.promise ?? Promise.resolve(), signal);
      yield event;
    }
  }
  const proxy = new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      return name === 'watch' ? watch : typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    client: proxy,
    hold: () => {
      gate ??= Promise.withResolvers();
    },
    release: () => {
      gate?.resolve();
      gate = undefined;
    },
  };
}
