import type { KubeClient, ResourceType } from '../../lib/kube/index.ts';

const writing = ['create', 'replace', 'apply', 'mergePatch', 'delete'] as const;

/** A client for a process that will not live long. */
export interface MortalClient {
  readonly client: KubeClient;
  /** Writes that reached the server, `method plural name`. Events are not among them. */
  readonly writes: readonly string[];
  /** Resolves when the process is dead. */
  readonly died: Promise<void>;
}

/**
 * A client whose process ends at a write: right before it is sent, or right after the server has carried it out, so that
 * nobody learns of it. Nothing gets out of a dead process, and no answer gets in.
 * @param at counted from 1, Events left out
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
