import { afterAll, beforeAll, expect, test } from 'vitest';
import { argoCdCrds, installCrds } from '../e2e/hub/index.ts';
import { type ArgoObject, pairApplications } from '../e2e/pair/index.ts';
import { type Cluster, startCluster } from '../e2e/testbed/index.ts';
import type { Application } from '../lib/argocd/index.ts';
import { ApiError, type KubeClient, namespaces } from '../lib/kube/index.ts';
import { type Collection, Refused, SimulatedCluster } from './cluster.ts';
import { canonical } from './json.ts';
import { VirtualTime } from './virtual-time.ts';

/** The simulated API server is compared with a real one: all requests of some verb, on an object in some state, with some body. */

type Json = Record<string, unknown>;
type Propagation = 'Foreground' | 'Background' | 'Orphan';

interface Deletion {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: Propagation;
}

/** What both servers can do. */
interface Server {
  get(ref: Ref): Promise<Application | undefined>;
  create(ref: Ref, object: Json): Promise<unknown>;
  patch(ref: Ref, patch: Json): Promise<unknown>;
  replace(ref: Ref, object: Json): Promise<unknown>;
  delete(ref: Ref, options: Deletion): Promise<unknown>;
}

interface Ref {
  readonly namespace: string;
  readonly name: string;
}

/** A request about an object as it is now. */
interface Request {
  readonly title: string;
  readonly send: (server: Server, ref: Ref, now: Application | undefined) => Promise<unknown>;
  readonly namespace?: string;
}

const hold = 'example.com/hold';
const otherUid = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const spec = {
  project: 'default',
  destination: { name: 'in-cluster', namespace: 'shop' },
  source: { repoURL: 'https://git', path: 'p', helm: { valuesObject: { a: 1, none: null, map: {}, list: [] } } },
};
const plain = { metadata: { labels: { team: 'a' }, annotations: { note: 'n' } }, spec };
const held = { metadata: { ...plain.metadata, finalizers: [hold] }, spec };

/** How an object came to be as it is. */
const states: Readonly<Record<string, (server: Server, ref: Ref) => Promise<unknown>>> = {
  absent: async () => undefined,
  plain: (server, ref) => server.create(ref, plain),
  held: (server, ref) => server.create(ref, held),
  edited: async (server, ref) => {
    await server.create(ref, held);
    await server.patch(ref, { spec: { source: { path: 'q' } } });
  },
  leaving: async (server, ref) => {
    await server.create(ref, held);
    await server.delete(ref, { propagation: 'Background' });
  },
  recreated: async (server, ref) => {
    await server.create(ref, plain);
    await server.delete(ref, { propagation: 'Background' });
    await server.create(ref, plain);
  },
};

/** What a request says of the object that it means. */
const preconditions: Readonly<Record<string, (now: Application | undefined) => Json>> = {
  'no precondition': () => ({}),
  'its uid': (now) => ({ uid: now?.metadata.uid ?? otherUid }),
  'another uid': () => ({ uid: otherUid }),
  'its version': (now) => ({ resourceVersion: now?.metadata.resourceVersion ?? '1' }),
  'an old version': () => ({ resourceVersion: '1' }),
  'its uid and version': (now) => ({
    uid: now?.metadata.uid ?? otherUid,
    resourceVersion: now?.metadata.resourceVersion ?? '1',
  }),
  'its uid and an old version': (now) => ({ uid: now?.metadata.uid ?? otherUid, resourceVersion: '1' }),
  'another uid and its version': (now) => ({
    uid: otherUid,
    resourceVersion: now?.metadata.resourceVersion ?? '1',
  }),
  'another uid and an old version': () => ({ uid: otherUid, resourceVersion: '1' }),
};

const patches: Readonly<Record<string, Json>> = {
  nothing: {},
  'what is there': { spec: { project: 'default' } },
  spec: { spec: { source: { path: 'other' } } },
  'a value to null': { spec: { source: { helm: { valuesObject: { a: null } } } } },
  'a map in the place of a value': { spec: { source: { helm: { valuesObject: { a: { b: 1, c: null } } } } } },
  'a list': { spec: { source: { helm: { valuesObject: { list: [null, { a: null }, 0.5] } } } } },
  'a key of every object': { spec: { source: { helm: { valuesObject: { constructor: 'x', toString: { a: 1 } } } } } },
  'all values': { spec: { source: { helm: null } } },
  label: { metadata: { labels: { team: 'b', more: 'c' } } },
  'no labels': { metadata: { labels: null } },
  'no annotations': { metadata: { annotations: null } },
  'an annotation away': { metadata: { annotations: { note: null } } },
  finalizer: { metadata: { finalizers: ['example.com/another', hold] } },
  'the same finalizers': { metadata: { finalizers: [hold] } },
  'no finalizers': { metadata: { finalizers: null } },
  'an empty list of finalizers': { metadata: { finalizers: [] } },
  status: { status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } } },
  operation: { operation: { sync: { revision: 'HEAD' } } },
  generation: { metadata: { generation: 17 } },
  'the time of its deletion': { metadata: { deletionTimestamp: null, deletionGracePeriodSeconds: null } },
  'the time of its creation': { metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } },
  'another name': { metadata: { name: 'other' } },
  'another namespace': { metadata: { namespace: 'other' } },
  'an invalid label': { metadata: { labels: { team: 'not valid' } } },
};

const replacements: Readonly<Record<string, (now: Json) => Json>> = {
  'what is there': (now) => now,
  spec: (now) => ({ ...now, spec: { ...spec, project: 'other' } }),
  'a null': (now) => ({ ...now, spec: { ...spec, source: { ...spec.source, helm: { valuesObject: { a: null } } } } }),
  'no labels': ({ metadata, ...now }) => ({ ...now, metadata: { ...(metadata as Json), labels: {} } }),
  finalizer: ({ metadata, ...now }) => ({ ...now, metadata: { ...(metadata as Json), finalizers: [hold, 'a.b/c'] } }),
  'no finalizers': ({ metadata, ...now }) => ({ ...now, metadata: { ...(metadata as Json), finalizers: [] } }),
  status: (now) => ({ ...now, status: { sync: { status: 'Synced' } } }),
  'another name': ({ metadata, ...now }) => ({ ...now, metadata: { ...(metadata as Json), name: 'other' } }),
};

const creations: Readonly<Record<string, Json>> = {
  plain,
  held,
  'with a uid': { ...plain, metadata: { ...plain.metadata, uid: otherUid } },
  'with a version': { ...plain, metadata: { ...plain.metadata, resourceVersion: '1' } },
  'with a generation': { ...plain, metadata: { ...plain.metadata, generation: 5 } },
  'being deleted': { ...held, metadata: { ...held.metadata, deletionTimestamp: '2020-01-01T00:00:00Z' } },
  'with an invalid label': { ...plain, metadata: { labels: { team: 'not valid' } } },
  'with a status': { ...plain, status: { sync: { status: 'Synced' } } },
};

const deletions: readonly (Propagation | undefined)[] = [undefined, 'Background', 'Foreground', 'Orphan'];

function* requests(): Generator<Request> {
  for (const [title, object] of Object.entries(creations)) {
    yield { title: `create ${title}`, send: (server, ref) => server.create(ref, object) };
  }
  for (const namespace of ['missing', 'terminating']) {
    yield {
      title: `create in a namespace that is ${namespace}`,
      namespace,
      send: (server, ref) => server.create(ref, plain),
    };
    yield {
      title: `patch in a namespace that is ${namespace}`,
      namespace,
      send: (server, ref) => server.patch(ref, {}),
    };
    yield {
      title: `delete in a namespace that is ${namespace}`,
      namespace,
      send: (server, ref) => server.delete(ref, {}),
    };
  }
  const withMetadata = (body: Json, more: Json) => ({ ...body, metadata: { ...(body.metadata as Json), ...more } });
  for (const [about, precondition] of Object.entries(preconditions)) {
    const bodies = about === 'no precondition' ? Object.keys(patches) : ['nothing', 'spec'];
    for (const body of bodies) {
      yield {
        title: `patch ${body}, ${about}`,
        send: (server, ref, now) => server.patch(ref, withMetadata(patches[body] ?? {}, precondition(now))),
      };
    }
    const wholes = about === 'its version' ? Object.keys(replacements) : ['spec'];
    for (const body of wholes) {
      yield {
        title: `replace ${body}, ${about}`,
        send: (server, ref, now) => {
          const { resourceVersion: _, uid: __, ...metadata } = (now ?? plain).metadata as Json;
          const whole =
            replacements[body]?.({ ...(now ?? plain), metadata: { ...metadata, ...precondition(now) } }) ?? {};
          return server.replace(ref, whole);
        },
      };
    }
    for (const propagation of about === 'no precondition' ? deletions : ['Background' as const]) {
      const options = propagation === undefined ? {} : { propagation };
      yield {
        title: `delete ${propagation ?? ''}, ${about}`,
        send: (server, ref, now) => server.delete(ref, { ...precondition(now), ...options }),
      };
    }
  }
}

let cluster: Cluster;
let real: Server;
const simulatedCluster = new SimulatedCluster('simulated', new VirtualTime());
simulatedCluster.missing.add('missing');
simulatedCluster.terminating.add('terminating');
const simulated = simulatedServer(simulatedCluster.of('Application'));

beforeAll(async () => {
  cluster = await startCluster({ name: 'answers' });
  const { client } = cluster;
  await installCrds(client, await argoCdCrds());
  // The garbage collector would end deletions in the foreground, sooner or later.
  await cluster.controllerManager.kill();
  await client.create(namespaces, { metadata: { name: 'terminating', finalizers: ['example.com/hold'] } });
  await client.delete(namespaces, { name: 'terminating' });
  real = realServer(client);
});
afterAll(() => cluster?.stop());

let count = 0;
test.each(Object.keys(states))('answers as a real API server about an object that is %s', async (state) => {
  const differences: string[] = [];
  for (const request of requests()) {
    const ref = { namespace: request.namespace ?? 'default', name: `a${++count}` };
    if (request.namespace !== undefined && state !== 'absent') {
      continue;
    }
    const [should, is] = [await answerOf(real, ref, state, request), await answerOf(simulated, ref, state, request)];
    if (canonical(should) !== canonical(is)) {
      differences.push(`${request.title}:\n  real      ${canonical(should)}\n  simulated ${canonical(is)}`);
    }
  }
  expect(differences).toEqual([]);
});

/** What a server answers, and what it has afterwards, without what differs between any two. */
async function answerOf(server: Server, ref: Ref, state: string, request: Request): Promise<Json> {
  if (request.namespace === undefined) {
    await states[state]?.(server, ref);
  }
  const before = request.namespace === undefined ? await server.get(ref) : undefined;
  let answer: Json;
  try {
    await request.send(server, ref, before);
    answer = { status: 'ok' };
  } catch (error) {
    if (!(error instanceof Refused || error instanceof ApiError)) {
      throw error;
    }
    answer = { status: error.status, reason: error.reason };
  }
  const after = request.namespace === undefined ? await server.get(ref) : undefined;
  return { ...answer, before: shown(before, undefined), after: shown(after, before) };
}

function shown(object: Application | undefined, before: Application | undefined): Json | undefined {
  if (object === undefined) {
    return undefined;
  }
  const { uid, resourceVersion, generation, labels, annotations, finalizers = [], deletionTimestamp } = object.metadata;
  return {
    isSame: before && uid === before.metadata.uid,
    isWritten: before && resourceVersion !== before.metadata.resourceVersion,
    generation,
    labels: labels ?? {},
    annotations: annotations ?? {},
    finalizers,
    isLeaving: deletionTimestamp !== undefined,
    spec: object.spec,
    status: object.status,
    operation: object.operation,
  };
}

function realServer(client: KubeClient): Server {
  const path = ({ namespace, name }: Ref) =>
    `/apis/argoproj.io/v1alpha1/namespaces/${namespace}/applications${name === '' ? '' : `/${name}`}`;
  const kind = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' };
  const send = async (
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    at: string,
    body: Json,
    type = 'application/json',
  ) => {
    const { body: answer } = await client.request(at, { method, headers: { 'content-type': type }, body });
    return JSON.parse(await answer.text()) as unknown;
  };
  return {
    get: (ref) => client.get<ArgoObject>(pairApplications, ref) as Promise<Application | undefined>,
    create: ({ namespace, name }, object) =>
      send('POST', path({ namespace, name: '' }), {
        ...kind,
        ...object,
        metadata: { ...(object.metadata as Json), name },
      }),
    patch: (ref, patch) => send('PATCH', path(ref), patch, 'application/merge-patch+json'),
    replace: (ref, object) =>
      send('PUT', path(ref), { ...kind, ...object, metadata: { name: ref.name, ...(object.metadata as Json) } }),
    delete: (ref, { propagation, ...conditions }) =>
      send('DELETE', path(ref), {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(Object.keys(conditions).length > 0 && { preconditions: conditions }),
        ...(propagation !== undefined && { propagationPolicy: propagation }),
      }),
  };
}

function simulatedServer(collection: Collection<Application>): Server {
  const named = (ref: Ref, object: Json) =>
    ({ ...object, metadata: { ...ref, ...(object.metadata as Json) } }) as unknown as Application;
  return {
    get: async (ref) => collection.get(ref),
    create: async (ref, object) => collection.create(named(ref, object)),
    patch: async (ref, patch) => collection.patch(ref, patch),
    replace: async (ref, object) => collection.replace(ref, named(ref, object)),
    delete: async (ref, options) => collection.delete(ref, options),
  };
}
