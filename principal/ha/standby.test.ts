import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { abortable, wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { argoApplications } from '../../lib/bridge/index.ts';
import type { Informer, KubeObject } from '../../lib/kube/index.ts';
import { encodeEvent, eventTypes, objectEvent, type PrimaryConnection, targets } from '../../lib/wire/index.ts';
import { KeptObjects } from './kept-objects.ts';
import { deletedHereReason, keptOutReason, notTellingReason, type ReplicatedKind, unreadableReason } from './kinds.ts';
import { Standby } from './standby.ts';
import type { StandbyWriter } from './standby-writer.ts';
import { silentMetrics } from './testing/silent-metrics.ts';

// What a standby acknowledges first: it knows what became of everything that both hubs have had.

const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** What an active hub says of an Application. */
interface Answer {
  readonly status: string;
  readonly reason?: string;
}

const marked = { [annotations.onBothHubs]: 'true' };
const keptOutLabels = { [wellKnown.ignoreSyncLabel]: 'true' };

/** The Applications of a hub. */
const applications = (list: readonly KubeObject[]): ReplicatedKind => ({
  name: 'Application',
  target: targets.application,
  type: argoApplications,
  informer: { list: () => list } as unknown as Informer<KubeObject>,
  includes: () => true,
  yields: false,
});

/** A connection to a hub that has nothing. */
const toEmptyHub = {
  snapshot: async () => ({ agents: [], lastSequenceNum: 0n, principalResources: [] }),
  status: async () => ({ currentSequenceNum: 0n, pendingEvents: 0, lastEventUnix: 0n, connectedReplicas: 1 }),
  confirm: async () => ({ results: [] }),
  reportRefused: async () => true,
  explain: async () => {
    throw new Error('the connection works');
  },
  destroy: nothing,
};

const follow = (
  kind: ReplicatedKind,
  connection: PrimaryConnection,
  writer: Partial<StandbyWriter>,
  isPromoted = false,
) => {
  const keeper = { forget: nothing, originOf: nothing, learnOrigin: nothing, ...writer } as StandbyWriter;
  return new Standby({
    kept: new KeptObjects({ writer: keeper, refused: nothing, logger }),
    isPromoted: () => isPromoted,
    server: 'hub1:443',
    tls: () => 'plaintext',
    kinds: [kind],
    writer: keeper,
    agents: nothing,
    synced: nothing,
    disconnected: nothing,
    metrics: silentMetrics,
    connect: async () => connection,
    logger,
  });
};

/** A standby with one Application, which the active hub has no more. `answers` are what that says of it, one after the other. */
function missingOne(notes: Readonly<Record<string, string>>, ...answers: readonly Answer[]) {
  const said: string[] = [];
  const stop = new AbortController();
  let asked = 0;
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    subscribe: () => ({
      acknowledge: (sequence) => {
        said.push(`acknowledged ${sequence}`);
        stop.abort();
      },
      pause: nothing,
      resume: nothing,
    }),
    confirm: async ({ resources }) => {
      const { status = '', reason = '' } = answers[asked++] ?? {};
      said.push(status);
      return { results: resources.map((resource) => ({ resource, status, reason })) };
    },
  };
  const web = { metadata: { namespace: 'cluster1', name: 'web', annotations: notes } };
  const standby = follow(applications([web]), connection, { remove: async () => void said.push('removed') });
  return { said, ended: standby.run(stop.signal) };
}

test('while the active hub cannot tell of an object, nothing is acknowledged: it may have been deleted', async () => {
  const { said, ended } = missingOne(marked, { status: 'unknown', reason: unreadableReason }, { status: 'deleted' });
  await ended;
  expect(said).toEqual(['unknown', 'deleted', 'removed', 'acknowledged 0']);
});

test('nor of an object without the annotation: it may have been deleted before it got that', async () => {
  const { said, ended } = missingOne(
    {},
    { status: 'unknown', reason: unreadableReason },
    { status: 'deleted', reason: deletedHereReason },
  );
  await ended;
  expect(said).toEqual(['unknown', 'deleted', 'removed', 'acknowledged 0']);
});

test.each([
  ['an object of the active hub alone', keptOutReason],
  ['an object of which it never tells', notTellingReason],
])('%s is nothing to wait for', async (_, reason) => {
  const { said, ended } = missingOne(marked, { status: 'unknown', reason });
  await ended;
  expect(said).toEqual(['unknown', 'acknowledged 0']);
});

test('an object of which nobody knew here that both hubs have it goes when it was deleted on the other one', async () => {
  const known = missingOne({}, { status: 'deleted', reason: deletedHereReason });
  await known.ended;
  expect(known.said).toEqual(['deleted', 'removed', 'acknowledged 0']);
  const never = missingOne({}, { status: 'deleted' });
  await never.ended;
  expect(never.said).toEqual(['deleted', 'acknowledged 0']);
});

test('defect 9: what an agent has sent is not written, but the hub asked for what it has made of it', async () => {
  const stop = new AbortController();
  const said: string[] = [];
  const metadata = { namespace: 'argocd', name: 'web', uid: 'web-1', resourceVersion: '1' };
  const origin = { source: 'agent', principalUid: 'hub-1' };
  const sent = { metadata, spec: { project: 'default' } };
  const event = encodeEvent(objectEvent(targets.application, eventTypes.create, sent, origin));
  let snapshots = 0;
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    subscribe: (handlers) => ({
      acknowledge: (sequence) => {
        said.push(`acknowledged ${sequence}`);
        if (sequence === 0n) {
          handlers.event({ event, agentName: 'a', direction: 'inbound', sequenceNum: 1n, processedAtUnix: 0n });
        }
      },
      pause: nothing,
      resume: nothing,
    }),
    snapshot: async () => {
      if (++snapshots === 2) {
        stop.abort();
      }
      return toEmptyHub.snapshot();
    },
  };
  const standby = follow(applications([]), connection, { put: async () => said.push('written') > 0 });
  await standby.run(stop.signal);
  expect(snapshots).toBe(2);
  expect(said).toEqual(['acknowledged 0', 'acknowledged 1']);
});

test.each([
  ['a hub that becomes active writes what has arrived first', true],
  ['a standby that ends waits for no write: what is not acknowledged comes again', false],
])('%s', async (_, isPromoted) => {
  const stop = new AbortController();
  const late = Promise.withResolvers<void>();
  const metadata = { namespace: 'argocd', name: 'web', uid: 'web-1', resourceVersion: '1' };
  const origin = { source: 'principal', principalUid: 'hub-1' };
  const event = encodeEvent(objectEvent(targets.application, eventTypes.specUpdate, { metadata }, origin));
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    subscribe: (handlers) => ({
      acknowledge: (sequence) => {
        if (sequence === 0n) {
          handlers.event({ event, agentName: 'a', direction: 'outbound', sequenceNum: 1n, processedAtUnix: 0n });
        }
      },
      pause: nothing,
      resume: nothing,
    }),
  };
  let isWritten = false;
  const put = async (_kind: ReplicatedKind, _object: KubeObject, signal: AbortSignal) => {
    stop.abort();
    await abortable(late.promise, signal);
    isWritten = true;
    return true;
  };
  const writer = { put, parse: () => ({ metadata }) };
  const ended = follow(applications([]), connection, writer, isPromoted).run(stop.signal);
  setTimeout(() => late.resolve(), 50);
  await ended;
  expect(isWritten).toBe(isPromoted);
});

test('an object that is refused here is told, neither waited for nor acknowledged for the active hub, and tried on', async () => {
  const stop = new AbortController();
  const said: string[] = [];
  const data = (name: string) =>
    Buffer.from(JSON.stringify({ metadata: { namespace: 'cluster1', name, uid: name, resourceVersion: '1' } }));
  const resource = (name: string) => ({
    kind: 'Application',
    namespace: 'cluster1',
    name,
    uid: name,
    specChecksum: Buffer.alloc(0),
    data: data(name),
  });
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    snapshot: async () => ({
      agents: [],
      lastSequenceNum: 7n,
      principalResources: [resource('refused'), resource('web')],
    }),
    subscribe: (handlers) => ({
      acknowledge: (sequence) => {
        said.push(`acknowledged ${sequence}`);
        if (sequence === 7n) {
          const metadata = { namespace: 'cluster1', name: 'shop', uid: 'shop', resourceVersion: '1' };
          const event = objectEvent(
            targets.application,
            eventTypes.specUpdate,
            { metadata },
            { source: '', principalUid: '' },
          );
          const sent = { event: encodeEvent(event), agentName: 'a', direction: 'outbound', processedAtUnix: 0n };
          handlers.event({ ...sent, sequenceNum: 8n });
        }
      },
      pause: nothing,
      resume: nothing,
    }),
    reportRefused: async (resources) => {
      said.push(`refused ${resources.map(({ name }) => name)}`);
      return true;
    },
  };
  let isRefused = true;
  const put = async (_kind: ReplicatedKind, { metadata: { name } }: KubeObject) => {
    if (name === 'refused' && isRefused) {
      throw new Error('422');
    }
    return true;
  };
  const parse = (_kind: ReplicatedKind, bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString()) as KubeObject;
  const standby = follow(applications([]), connection, { put, parse });
  const ended = standby.run(stop.signal);
  await until(() => expect(said).toEqual(['refused refused', 'acknowledged 7', 'acknowledged 8']));
  expect(standby.lag.objects).toBe(1);
  expect(standby.refusedObjects).toEqual(['Application/cluster1/refused']);
  isRefused = false;
  await until(() => expect(said.at(-1)).toBe('refused '));
  expect(standby.lag.objects).toBe(0);
  stop.abort();
  await ended;
}, 20_000);

test('a hub that does not know of refused objects, as argocd-agent does not, gets no acknowledgement beyond one', async () => {
  const stop = new AbortController();
  const said: string[] = [];
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    subscribe: (handlers) => ({
      acknowledge: (sequence) => {
        said.push(`acknowledged ${sequence}`);
        for (const [sequenceNum, name] of sequence === 0n
          ? ([
              [1n, 'web'],
              [2n, 'refused'],
              [3n, 'web'],
            ] as const)
          : []) {
          const metadata = { namespace: 'cluster1', name, uid: name, resourceVersion: '1' };
          const event = objectEvent(
            targets.application,
            eventTypes.specUpdate,
            { metadata },
            { source: '', principalUid: '' },
          );
          handlers.event({
            event: encodeEvent(event),
            agentName: 'a',
            direction: 'outbound',
            sequenceNum,
            processedAtUnix: 0n,
          });
        }
      },
      pause: nothing,
      resume: nothing,
    }),
    reportRefused: async () => {
      said.push('refused');
      return false;
    },
  };
  const put = async (_kind: ReplicatedKind, { metadata: { name } }: KubeObject) => {
    if (name === 'refused') {
      throw new Error('422');
    }
    return true;
  };
  const parse = (_kind: ReplicatedKind, bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString()) as KubeObject;
  const ended = follow(applications([]), connection, { put, parse }).run(stop.signal);
  await until(() => expect(said.at(-1)).toBe('refused'));
  expect(said).toEqual(['acknowledged 0', 'acknowledged 1', 'refused']);
  stop.abort();
  await ended;
});

test.each([
  ['a copy goes', keptOutLabels, marked, ['removed']],
  ['what is only here stays', keptOutLabels, {}, []],
  ['without the label it can only be a copy', {}, {}, ['removed']],
])('what was kept out by its label and is deleted on the active hub: %s', async (_, labels, notes, expected) => {
  const said: string[] = [];
  const stop = new AbortController();
  const metadata = { namespace: 'cluster1', name: 'web', uid: 'web-1', resourceVersion: '1' };
  const gone = objectEvent(
    targets.application,
    eventTypes.delete,
    { metadata: { ...metadata, labels } as typeof metadata },
    {
      source: 'principal',
      principalUid: 'hub1',
    },
  );
  const connection: PrimaryConnection = {
    ...toEmptyHub,
    subscribe: ({ event }) => ({
      acknowledge: (sequence) => {
        if (sequence === 0n) {
          event({
            event: encodeEvent(gone),
            agentName: 'cluster1',
            direction: 'outbound',
            sequenceNum: 1n,
            processedAtUnix: 0n,
          });
        } else {
          stop.abort();
        }
      },
      pause: nothing,
      resume: nothing,
    }),
  };
  const local: KubeObject = { metadata: { ...metadata, uid: 'here', annotations: notes } };
  const remove: StandbyWriter['remove'] = async (_kind, _ref, _signal, { isCopy = () => true } = {}) => {
    if (isCopy(local)) {
      said.push('removed');
    }
  };
  const parse = (_: unknown, data: Uint8Array) => JSON.parse(Buffer.from(data).toString()) as KubeObject;
  await follow(applications([]), connection, { remove, parse }).run(stop.signal);
  expect(said).toEqual(expected);
});
