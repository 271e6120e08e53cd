import { onTestFinished } from 'vitest';
import { applyMergePatch } from '../../base/index.ts';
import { type ObjectRef, processRuntime, type Store, type StoreChange } from '../../sync/index.ts';
import {
  type AgentKind,
  type AgentMode,
  AgentSync,
  type CopySync,
  type HubKind,
  HubSync,
  type Message,
  type SourceSync,
} from '../index.ts';
import type { ReplicaObject } from './kinds.ts';

/** A log that remembers its warnings. */
export function testLog() {
  const warnings: string[] = [];
  const nothing = () => undefined;
  const warn = (_: object, message: string) => warnings.push(message);
  return { debug: nothing, info: nothing, warn, error: warn, warnings };
}

/** A cluster's objects of one kind in memory. */
export class Memory<T extends ReplicaObject> implements Store<T> {
  readonly objects = new Map<string, T>();
  /** What programs, not users, wrote. */
  readonly writes: string[] = [];
  /** How many of the next writes fail, and with which status. */
  fail = 0;
  status = 500;
  #version = 0;
  readonly #listeners = new Set<(change: StoreChange<T>) => void>();

  subscribe(listener: (change: StoreChange<T>) => void): () => void {
    for (const now of this.objects.values()) {
      listener({ old: undefined, now });
    }
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A user writes an object. */
  put(object: T, uid = `uid-${object.metadata.name}`): void {
    const resourceVersion = String(++this.#version);
    this.#store({ ...object, metadata: { namespace: 'argocd', ...object.metadata, uid, resourceVersion } });
  }

  /** A user changes an object. */
  edit(name: string, patch: object): void {
    const old = this.objects.get(name);
    if (old !== undefined) {
      this.put(applyMergePatch(old, patch) as T, old.metadata.uid);
    }
  }

  /** A user deletes an object, which stays while it has finalizers. */
  remove(name: string): void {
    const old = this.objects.get(name);
    if (old !== undefined) {
      this.#delete(old);
    }
  }

  async read({ name }: ObjectRef): Promise<T | undefined> {
    return this.objects.get(name);
  }

  async create(object: T): Promise<T> {
    this.#write('create');
    const { name } = object.metadata;
    if (this.objects.has(name)) {
      throw apiRefusal(409, 'AlreadyExists');
    }
    const version = String(++this.#version);
    return this.#store({
      ...object,
      metadata: { ...object.metadata, uid: `copy-${name}-${version}`, resourceVersion: version },
    });
  }

  async patch({ name }: ObjectRef, patch: { metadata?: { uid?: string } }): Promise<T> {
    this.#write('patch');
    const old = this.objects.get(name);
    if (old === undefined) {
      throw apiRefusal(404);
    }
    if (patch.metadata?.uid !== undefined && patch.metadata.uid !== old.metadata.uid) {
      throw Object.assign(apiRefusal(422, 'Invalid'), { details: { causes: [{ field: 'metadata.uid' }] } });
    }
    const next = applyMergePatch(old, patch) as T;
    next.metadata.resourceVersion = String(++this.#version);
    return this.#store(next);
  }

  async delete({ name }: ObjectRef, { uid }: { uid: string }): Promise<void> {
    this.#write('delete');
    const old = this.objects.get(name);
    if (old === undefined) {
      return;
    }
    if (old.metadata.uid !== uid) {
      throw apiRefusal(409);
    }
    this.#delete(old);
  }

  #delete(old: T): void {
    const metadata = { ...old.metadata, deletionTimestamp: 'now', resourceVersion: String(++this.#version) };
    this.#store({ ...old, metadata });
  }

  #write(what: string): void {
    if (this.fail-- > 0) {
      throw apiRefusal(this.status);
    }
    this.writes.push(what);
  }

  #store(now: T): T {
    const { name, deletionTimestamp, finalizers = [] } = now.metadata;
    const old = this.objects.get(name);
    const gone = deletionTimestamp !== undefined && finalizers.length === 0;
    if (gone) {
      this.objects.delete(name);
    } else {
      this.objects.set(name, now);
    }
    for (const listener of this.#listeners) {
      listener(gone ? { old: now, now: undefined } : { old, now });
    }
    return now;
  }
}

/** What an API server answers. */
export function apiRefusal(status: number, reason?: string): Error {
  return Object.assign(new Error(`status ${status}`), { status, reason });
}

interface Sides {
  readonly managed?: readonly HubKind<SourceSync>[];
  readonly autonomous?: readonly HubKind<CopySync>[];
  readonly agent:
    | { readonly mode: 'managed'; readonly kinds: readonly AgentKind<CopySync>[] }
    | { readonly mode: 'autonomous'; readonly kinds: readonly AgentKind<SourceSync>[] };
}

/** A principal and an agent named `one`, joined as the programs do it. */
export function pair({ managed = [], autonomous = [], agent: own }: Sides) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const log = testLog();
  const runtime = processRuntime(log);
  const principal = new HubSync({ managed, autonomous, runtime });
  const agent = new AgentSync({ ...own, runtime });
  principal.start(stop.signal);
  agent.start(stop.signal);
  /** Every message in the order in which it was sent. */
  const sent: Message[] = [];
  /** What the agent said that it cannot have. */
  const refusals: string[] = [];
  let open = true;
  const deliver = (to: (message: Message) => void) => (message: Message) => {
    const copy = structuredClone(message);
    queueMicrotask(() => open && to(copy));
    return true;
  };
  const toAgent = {
    send: (message: Message) => sent.push(message) > 0 && deliver((one) => agent.receive(one))(message),
    acknowledge: (message: Message) => void deliver((one) => agent.acknowledged(one))(message),
  };
  const toPrincipal = {
    send: (message: Message) => sent.push(message) > 0 && deliver((one) => principal.receive('one', one))(message),
    acknowledge: (message: Message, refusal?: string) => {
      refusals.push(...(refusal === undefined ? [] : [refusal]));
      deliver((one) => principal.acknowledged('one', one))(message);
    },
  };
  const connect = () => {
    open = true;
    principal.connected('one', own.mode satisfies AgentMode, toAgent);
    agent.connected(toPrincipal, { agent: 'one', principalNamespace: 'argocd' });
  };
  const disconnect = () => {
    open = false;
    principal.disconnected('one', toAgent);
    agent.disconnected(toPrincipal);
  };
  /** All is said and done that can be. */
  const settled = async () => {
    for (let quiet = 0; quiet < 5; ) {
      await new Promise((resolve) => setImmediate(resolve));
      const isBusy = [principal.stats('one'), agent.stats()].some((stats) => stats.pending > 0 || stats.queued > 0);
      quiet = isBusy ? 0 : quiet + 1;
    }
  };
  connect();
  return {
    principal,
    agent,
    sent,
    refusals,
    connect,
    disconnect,
    settled,
    stop: () => stop.abort(),
    warnings: log.warnings,
  };
}

/** Messages about objects, in short. */
export function summaries(sent: readonly Message[]): string[] {
  return sent.flatMap((message) =>
    message.target === 'resourceResync' || message.type === 'error'
      ? []
      : [`${message.target} ${message.type} ${message.object.metadata.name}`],
  );
}
