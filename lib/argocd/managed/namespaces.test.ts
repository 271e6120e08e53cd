import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type ObjectRef, processRuntime, type Store, type StoreChange } from '../../sync/index.ts';
import {
  AgentSync,
  type Application,
  ApplicationCopies,
  annotations,
  HubApplications,
  HubSync,
  type Message,
  type PeerConnection,
  sameNamespaces,
} from '../index.ts';

beforeAll(() => void vi.useFakeTimers());
afterAll(() => void vi.useRealTimers());

const nothing = () => undefined;
const runtime = {
  ...processRuntime({ debug: nothing, info: nothing, warn: nothing, error: nothing }),
  random: () => 0,
};
const mark = annotations.namespaceRemapped;

class Refusal extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`status ${status}`);
    this.status = status;
  }
}

/** A cluster's Applications in memory. */
class Memory implements Store<Application> {
  readonly objects = new Map<string, Application>();
  readonly namespaces = new Set(['argocd', 'hub', 'team', 'other']);
  #listener: (change: StoreChange<Application>) => void = nothing;
  #version = 0;

  put(object: Application): Application {
    const { namespace, name } = object.metadata;
    const now = {
      ...object,
      metadata: { uid: `local-${name}`, ...object.metadata, resourceVersion: `${++this.#version}` },
    };
    const old = this.objects.get(`${namespace}/${name}`);
    this.objects.set(`${namespace}/${name}`, now);
    this.#listener({ old, now });
    return now;
  }

  subscribe(listener: (change: StoreChange<Application>) => void): () => void {
    this.#listener = listener;
    for (const now of this.objects.values()) {
      listener({ old: undefined, now });
    }
    return nothing;
  }
  async read({ namespace, name }: ObjectRef): Promise<Application | undefined> {
    return this.objects.get(`${namespace}/${name}`);
  }
  async create(object: Application): Promise<Application> {
    if (!this.namespaces.has(object.metadata.namespace ?? '')) {
      throw new Refusal(404);
    }
    return this.put(object);
  }
  async patch(): Promise<Application> {
    throw new Refusal(422);
  }
  async delete({ namespace, name }: ObjectRef): Promise<void> {
    const old = this.objects.get(`${namespace}/${name}`);
    this.objects.delete(`${namespace}/${name}`);
    this.#listener({ old, now: undefined });
  }
}

const hubObject = (namespace: string, name = 'x', destination = 'a'): Application => ({
  metadata: { namespace, name, uid: `hub-${namespace}-${name}`, resourceVersion: '1' },
  spec: { destination: { name: destination } },
});

/** An agent in namespace `argocd`, its cluster and all that it says. */
function startAgent(principalNamespace: string, ensures = false, found: Application[] = []) {
  const cluster = new Memory();
  for (const object of found) {
    cluster.put(object);
  }
  const made: string[] = [];
  const applications = new ApplicationCopies({
    applications: cluster,
    namespace: 'argocd',
    mapping: (principal) => sameNamespaces(principal, 'argocd'),
    isAllowed: (namespace) => namespace !== 'secret',
    ensureNamespace: ensures
      ? async (namespace) => {
          made.push(namespace);
          cluster.namespaces.add(namespace);
        }
      : undefined,
    mismatchPolicy: 'recreate',
    adoptionPolicy: 'always',
    onRecreate: 'ignore',
    runtime,
  });
  const stop = new AbortController();
  const sync = new AgentSync({ mode: 'managed', kinds: [applications], runtime });
  sync.start(stop.signal);
  const sent: Message[] = [];
  sync.connected(
    { send: (message) => sent.push(message) > 0, acknowledge: nothing },
    { agent: 'a', principalNamespace },
  );
  const receive = async (message: Message) => {
    sync.receive(message);
    await vi.advanceTimersByTimeAsync(1);
  };
  let events = 0;
  const tell = (object: Application, type: 'create' | 'delete' = 'create') =>
    receive({
      target: 'application',
      type,
      principalUid: 'p',
      resourceId: type,
      eventId: `${type}${++events}`,
      object,
    });
  return { cluster, sync, sent, made, tell, receive };
}

const about = (sent: Message[], type: string) => sent.find((message) => message.type === type);

test.each([
  ['hub', 'hub', 'argocd', 'true'],
  ['hub', 'team', 'team', undefined],
  ['argocd', 'argocd', 'argocd', undefined],
  ['', 'team', 'team', undefined],
])('principal in "%s": what is in %s there is in %s here', async (principal, hub, local, remapped) => {
  const { cluster, sent, tell, receive } = startAgent(principal);
  await tell(hubObject(hub));
  expect(cluster.objects.get(`${local}/x`)?.metadata.annotations?.[mark]).toBe(remapped);
  expect([...cluster.objects.keys()]).toEqual([`${local}/x`]);

  const report = about(sent, 'status-update');
  expect(report).toMatchObject({ object: { metadata: { namespace: local, name: 'x' } } });
  expect((report as { object: Application }).object.metadata.annotations?.[mark]).toBe(remapped);

  const payload = { kind: 'Application', name: 'x', namespace: hub, uid: '' } as const;
  await receive({ target: 'resourceResync', type: 'response-synced-resource', resourceId: 'r', eventId: 'e', payload });
  expect(about(sent, 'request-update')).toMatchObject({ payload: { namespace: hub, name: 'x', uid: `hub-${hub}-x` } });

  await tell(hubObject(hub), 'delete');
  expect(cluster.objects.size).toBe(0);
});

test('a report names its Application also when somebody took the mark away', async () => {
  const { cluster, sent, tell } = startAgent('hub');
  await tell(hubObject('hub'));
  sent.length = 0;
  const copy = cluster.objects.get('argocd/x') as Application;
  const { [mark]: _, ...others } = copy.metadata.annotations ?? {};
  const started = startAgent('hub', false, [{ ...copy, metadata: { ...copy.metadata, annotations: others } }]);
  await started.receive({
    target: 'resourceResync',
    type: 'request-resource-resync',
    resourceId: 'r',
    eventId: 'e',
    payload: {},
  });
  expect(about(started.sent, 'status-update')).toMatchObject({
    object: { metadata: { annotations: { [mark]: 'true' } } },
  });
});

test('a missing namespace is made when it may be, and told else', async () => {
  const able = startAgent('hub', true);
  await able.tell(hubObject('new'));
  expect(able.made).toEqual(['new']);
  expect([...able.cluster.objects.keys()]).toEqual(['new/x']);

  const unable = startAgent('hub');
  await unable.tell(hubObject('new'));
  expect(about(unable.sent, 'error')).toMatchObject({ error: { resourceNamespace: 'new', message: 'status 404' } });
});

test.each([
  ['secret', "namespace secret is not among the agent's --allowed-namespaces"],
  ['argocd', /stands for the principal's/],
])('an Application of hub namespace %s has no place, and its user hears why', async (namespace, text) => {
  const { cluster, sent, tell } = startAgent('hub', true);
  await tell(hubObject(namespace));
  expect(cluster.objects.size).toBe(0);
  expect(about(sent, 'error')).toMatchObject({ error: { resourceNamespace: namespace, resourceName: 'x' } });
  expect((about(sent, 'error') as { error: { message: string } }).error.message).toMatch(text);
  const leaving = hubObject(namespace);
  leaving.metadata.deletionTimestamp = 'now';
  await tell(leaving);
  expect(about(sent, 'delete')).toMatchObject({ object: { metadata: { namespace, name: 'x' } } });
});

test('what is in namespaces that are not allowed does not exist to the agent', async () => {
  const copy = {
    ...hubObject('secret'),
    metadata: { ...hubObject('secret').metadata, annotations: { [annotations.sourceUid]: 'u' } },
  };
  const { cluster, sent, tell } = startAgent('hub', false, [copy]);
  await tell({ ...copy, metadata: { ...copy.metadata, uid: 'u' } }, 'delete');
  expect(cluster.objects.size).toBe(1);
  expect(about(sent, 'request-update')).toBeUndefined();
});

/** The principal with one agent `a`, whose namespace is `argocd`. */
function startPrincipal(...objects: Application[]) {
  const hub = new Memory();
  for (const object of objects) {
    hub.put(object);
  }
  const applications = new HubApplications({
    applications: hub,
    principalUid: 'p',
    agentOf: ({ spec }) => spec.destination?.name,
    namespaceOf: (_, local) => sameNamespaces('hub', 'argocd').toHub(local),
    runtime,
  });
  const sync = new HubSync({ managed: [applications], runtime });
  sync.start(new AbortController().signal);
  const sent: string[] = [];
  const connection: PeerConnection = {
    send: (message) => {
      if (message.target === 'application' && message.type !== 'error') {
        sent.push(`${message.type} ${message.object.metadata.namespace}/${message.object.metadata.name}`);
      }
      sync.acknowledged('a', message);
      return true;
    },
    acknowledge: nothing,
  };
  sync.connected('a', 'managed', connection);
  return { hub, sync, sent, connection };
}

test('an agent that started without one of two Applications of the same name gets it again', async () => {
  const { sync, sent } = startPrincipal(hubObject('hub'), hubObject('team'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sent.sort()).toEqual(['create hub/x', 'create team/x']);
  sent.length = 0;
  const payload = { kind: 'Application', name: 'x', namespace: 'team', uid: 'hub-team-x', checksum: null } as const;
  const resync = { target: 'resourceResync', resourceId: 'r' } as const;
  sync.receive('a', { ...resync, type: 'request-update', eventId: '1', payload: { ...payload, digest: 'old' } });
  sent.length = 0;
  sync.receive('a', {
    ...resync,
    type: 'request-synced-resource-list',
    eventId: '2',
    payload: { checksum: null, complete: true },
  });
  expect(sent).toEqual(['create hub/x']);
});

test('an Application that comes back to an agent is told anew, so that the agent reports', async () => {
  const { hub, sync, sent, connection } = startPrincipal(hubObject('team'));
  await vi.advanceTimersByTimeAsync(10_000);
  sync.disconnected('a', connection);
  hub.put(hubObject('team', 'x', 'b'));
  hub.put(hubObject('team', 'x', 'a'));
  sync.connected('a', 'managed', connection);
  expect(sent).toEqual(['create team/x', 'create team/x']);
});

test('a deletion that the API server forbids while it has not loaded its rights yet is made when it has', async () => {
  const { cluster, tell } = startAgent('argocd');
  await tell(hubObject('argocd'));
  const remove = cluster.delete.bind(cluster);
  cluster.delete = async () => {
    cluster.delete = remove;
    throw new Refusal(403);
  };
  await tell(hubObject('argocd'), 'delete');
  expect(cluster.objects.size).toBe(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(cluster.objects.size).toBe(0);
});
