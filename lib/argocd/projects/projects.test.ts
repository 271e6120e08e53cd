import { expect, onTestFinished, test, vi } from 'vitest';
import type { ObjectRef, Store, StoreChange } from '../../sync/index.ts';
import {
  AgentParts,
  AgentProjects,
  type AppProject,
  applyMergePatch,
  type Message,
  PrincipalParts,
  PrincipalProjects,
} from '../index.ts';

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A cluster's AppProjects in memory; `fail` makes that many writes fail. */
class Cluster implements Store<AppProject> {
  readonly objects = new Map<string, AppProject>();
  readonly writes: string[] = [];
  fail = 0;
  #version = 0;
  readonly #listeners = new Set<(change: StoreChange<AppProject>) => void>();

  subscribe(listener: (change: StoreChange<AppProject>) => void): () => void {
    for (const now of this.objects.values()) listener({ old: undefined, now });
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A user's change; undefined deletes. */
  set(name: string, spec: AppProject['spec'] | undefined, uid = `uid-${name}`): void {
    const old = this.objects.get(name);
    const resourceVersion = String(++this.#version);
    const metadata = { ...old?.metadata, name, namespace: 'argocd', uid, resourceVersion };
    this.#put(name, spec === undefined ? undefined : { metadata, spec });
  }

  async read({ name }: ObjectRef): Promise<AppProject | undefined> {
    return this.objects.get(name);
  }

  async create(object: AppProject): Promise<AppProject> {
    this.#write('create');
    const { name } = object.metadata;
    if (this.objects.has(name)) throw Object.assign(new Error('exists'), { status: 409, reason: 'AlreadyExists' });
    const version = String(++this.#version);
    const metadata = { ...object.metadata, uid: `local-${name}-${version}`, resourceVersion: version };
    return this.#put(name, { ...object, metadata }) as AppProject;
  }

  async patch({ name }: ObjectRef, patch: object): Promise<AppProject> {
    this.#write('patch');
    const old = this.objects.get(name);
    if (old === undefined) throw Object.assign(new Error('not found'), { status: 404 });
    const next = applyMergePatch(old, patch) as AppProject;
    next.metadata.resourceVersion = String(++this.#version);
    return this.#put(name, next) as AppProject;
  }

  async delete({ name }: ObjectRef): Promise<void> {
    this.#write('delete');
    this.#put(name, undefined);
  }

  #write(what: string): void {
    if (this.fail-- > 0) throw new Error('the API server is away');
    this.writes.push(what);
  }

  #put(name: string, now: AppProject | undefined): AppProject | undefined {
    const old = this.objects.get(name);
    if (now === undefined) this.objects.delete(name);
    else this.objects.set(name, now);
    if (old !== undefined || now !== undefined) for (const listener of this.#listeners) listener({ old, now });
    return now;
  }
}

/** A hub, a managed cluster, and both sides; `connect` joins them as the programs do. */
function start(options: { mapping?: 'namespace' | 'destination'; hub?: Cluster; managed?: Cluster } = {}) {
  const { mapping = 'destination', hub = new Cluster(), managed = new Cluster() } = options;
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const principal = new PrincipalParts({
    managed: [new PrincipalProjects({ store: hub, principalUid: 'p', mapping, log })],
    log,
  });
  const agent = new AgentParts({
    mode: 'managed',
    kinds: [new AgentProjects({ store: managed, namespace: 'argocd', log })],
    log,
  });
  principal.start(stop.signal);
  agent.start(stop.signal);
  const toAgent = {
    send: (message: Message) => {
      queueMicrotask(() => agent.receive(message));
      return true;
    },
    acknowledge: (message: Message) => queueMicrotask(() => agent.acknowledged(message)),
  };
  const toPrincipal = {
    send: (message: Message) => {
      queueMicrotask(() => principal.receive('one', message));
      return true;
    },
    acknowledge: (message: Message) => queueMicrotask(() => principal.acknowledged('one', message)),
  };
  const connect = () => {
    principal.connected('one', 'managed', toAgent);
    agent.connected(toPrincipal, { agent: 'one', principalNamespace: '' });
  };
  connect();
  const settled = () => vi.waitUntil(() => principal.stats('one').pending === 0);
  return { hub, managed, connect, settled };
}

const spec = (name = 'one', path = '*') => ({ sourceRepos: [path], destinations: [{ name, namespace: '*' }] });

test('a project that names the agent is made, changed and removed', async () => {
  const { hub, managed, settled } = start();
  hub.set('team', spec());
  await settled();
  expect(managed.objects.get('team')).toMatchObject({
    metadata: { annotations: { 'argocd.argoproj.io/source-uid': 'uid-team' } },
    spec: { destinations: [{ name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace: '*' }] },
  });
  hub.set('team', spec('one', 'https://other'));
  await settled();
  expect(managed.objects.get('team')?.spec.sourceRepos).toEqual(['https://other']);
  hub.set('team', spec('two'));
  await settled();
  expect(managed.objects.has('team')).toBe(false);
  expect(managed.writes).toEqual(['create', 'patch', 'delete']);
});

test('others are left alone', async () => {
  const { hub, managed, settled } = start({ mapping: 'namespace' });
  hub.set('elsewhere', spec('two'));
  hub.set('not-mine', spec());
  managed.set('local', spec());
  await settled();
  expect(managed.writes).toEqual([]);
});

test("the hub's untouched default project reaches every agent, and takes over the one that is there", async () => {
  const managed = new Cluster();
  managed.set('default', { sourceRepos: [] });
  const { hub, settled } = start({ mapping: 'namespace', managed });
  hub.set('default', {
    sourceRepos: ['*'],
    destinations: [{ namespace: '*', server: '*' }],
    clusterResourceWhitelist: [{ group: '*', kind: '*' }],
  });
  await settled();
  await vi.waitUntil(() => managed.writes.length === 1);
  expect(managed.objects.get('default')?.spec.sourceRepos).toEqual(['*']);
});

test('changes made on the managed cluster are put back', async () => {
  const { hub, managed, settled } = start();
  hub.set('team', spec());
  await settled();
  const { uid } = managed.objects.get('team')?.metadata ?? {};
  managed.set('team', { sourceRepos: ['mine'] }, uid);
  await vi.waitUntil(() => managed.objects.get('team')?.spec.sourceRepos?.[0 as never] === '*');
  managed.set('team', undefined);
  await vi.waitUntil(() => managed.objects.has('team'));
});

test('a write that fails is repeated', async () => {
  const { hub, managed, settled } = start();
  managed.fail = 2;
  hub.set('team', spec());
  await settled();
  expect(managed.objects.has('team')).toBe(true);
});

test('after a restart of both sides nothing is written that is in step, and what must go goes', async () => {
  const first = start();
  first.hub.set('kept', spec());
  first.hub.set('dropped', spec());
  await first.settled();
  const managed = new Cluster();
  for (const [name, object] of first.managed.objects) managed.objects.set(name, object);
  const hub = new Cluster();
  hub.set('kept', spec());
  const second = start({ hub, managed });
  await vi.waitUntil(() => !managed.objects.has('dropped'));
  await second.settled();
  expect(managed.writes).toEqual(['delete']);
});
