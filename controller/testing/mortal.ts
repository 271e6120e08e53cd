import type { KubeClient, ResourceType } from '../../lib/kube/index.ts';

const writing = ['create', 'replace', 'apply', 'patch', 'mergePatch', 'delete'] as const;

/** A client for a process that dies at a write. */
export interface MortalClient {
  readonly client: KubeClient;
  /** Writes that reached the server, as `method plural name`, without Events. */
  readonly writes: readonly string[];
  /** Resolves when the process has died. */
  readonly died: Promise<void>;
}

/**
 * A client whose process dies at a write: before the write is sent, or after the server has carried it out. Then no request
 * leaves the process and no response reaches it.
 * @param at number of the write, from 1, without Events
 */
export function mortalClient(client: KubeClient, at: { write: number; when: 'before' | 'after' }): MortalClient {
  const writes: string[] = [];
  const { promise: died, resolve } = Promise.withResolvers<void>();
  let count = 0;
  let isDead = false;
  const die = () => {
    isDead = true;
    resolve();
  };
  const survive = () => {
    if (isDead) {
      throw new Error('the process is dead');
    }
  };
  const intercept = async (method: (typeof writing)[number], args: unknown[]): Promise<unknown> => {
    survive();
    const call = () => (client[method] as (...all: unknown[]) => Promise<unknown>).apply(client, args);
    const [type, object] = args as [ResourceType, { name?: string; metadata?: { name: string } }];
    if (type.plural === 'events') {
      return call();
    }
    count += 1;
    const isLast = count === at.write;
    if (isLast && at.when === 'before') {
      die();
    }
    survive();
    const answer = await call();
    writes.push(`${method} ${type.plural} ${object.metadata?.name ?? object.name ?? ''}`);
    if (isLast) {
      die();
    }
    survive();
    return answer;
  };
  const mortal = new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') {
        return value;
      }
      const method = writing.find((one) => one === name);
      return method ? (...args: unknown[]) => intercept(method, args) : value.bind(target);
    },
  });
  return { client: mortal, writes, died };
}
