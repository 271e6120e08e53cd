import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { eventLines, messageBytes } from '../../e2e/recordings/index.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import {
  AgentSync,
  type AppProject,
  type GpgKeys,
  HubSync,
  type Message,
  publishAppProjects,
  publishGpgKeys,
  publishOwnAppProjects,
  publishRepositories,
  type RepositorySecret,
  referenceMirror,
  resourceListChecksum,
  specChecksum,
} from '../argocd/index.ts';
import { processRuntime, type Store, type StoreChange, type StoredObject } from '../sync/index.ts';
import { decodeEvent, principalSource, type WireEvent } from '../wire/index.ts';
import { eventOf, messageOf } from './index.ts';

// What Go peers were recorded to say about projects, repositories and keys, and what ours say of the same objects.

interface Line {
  readonly seq: number;
  readonly dir: 'agent->principal' | 'principal->agent';
  readonly agent?: string;
  readonly event: WireEvent;
  readonly message: Message;
}

function read(name: string): Line[] {
  return eventLines(name).flatMap((line) => {
    const event = decodeEvent(Event.decode(messageBytes(line)).event);
    const message = messageOf(event);
    return message === undefined ? [] : [{ ...line, event, message }];
  });
}

beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterAll(() => void vi.useRealTimers());

describe('recorded by Go peers', () => {
  const lines = ['appproject', 'repository', 'gpgkey', 'resync', 'connect'].flatMap(read);
  const about = (target: Message['target'], dir: Line['dir']) =>
    lines.filter((line) => line.message.target === target && line.dir === dir);

  test('every event about projects, repositories and keys is read', () => {
    expect(about('appproject', 'principal->agent').length).toBeGreaterThan(20);
    expect(about('appproject', 'agent->principal').length).toBeGreaterThan(20);
    expect(about('repository', 'principal->agent').length).toBe(5);
    expect(about('gpgkey', 'principal->agent').length).toBe(3);
  });

  test('we would say the same of the same objects, attribute by attribute', async () => {
    for (const target of ['appproject', 'repository', 'gpgkey'] as const) {
      for (const { event, message, seq } of about(target, 'principal->agent')) {
        if (message.target !== target || message.type === 'delete') {
          continue;
        }
        // Go principals stamp their identity on what they send at a change, not at a connect; ours always do.
        const uid = event.extensions.principaluid ?? 'any';
        const ours = eventOf(await published(message, uid), principalSource);
        const shown = ({ target, subject, resourceId, eventId, contentType, source, type, extensions }: WireEvent) => ({
          target,
          subject,
          resourceId,
          eventId,
          contentType,
          source,
          isState: type.endsWith('.create') || type.endsWith('.spec-update'),
          principalUid: target === 'gpgkey' ? undefined : (extensions.principaluid ?? 'any'),
        });
        expect(shown(ours), `line ${seq}`).toEqual(shown(event));
        expect(meaningOf(messageOf(ours)), `line ${seq}`).toEqual(meaningOf(message));
      }
    }
  });

  test('so would an autonomous agent of ours', async () => {
    for (const { event, message, seq } of about('appproject', 'agent->principal')) {
      if (message.target !== 'appproject' || message.type === 'delete') {
        continue;
      }
      const ours = eventOf(await publishedByAgent(message.object), event.source);
      expect(ours, `line ${seq}`).toMatchObject({
        target: event.target,
        subject: event.subject,
        resourceId: event.resourceId,
        eventId: event.eventId,
      });
      // Ours also names the identity: else a Go principal keeps that of a project before it under this name.
      const { metadata } = message.object;
      const marks = { ...metadata.annotations, 'argocd.argoproj.io/source-uid': metadata.uid ?? '' };
      const named = { ...message, object: { ...message.object, metadata: { ...metadata, annotations: marks } } };
      expect(meaningOf(messageOf(ours))).toEqual(meaningOf(named));
    }
  });

  test('the checksums that Go agents say are those of what they had been sent', () => {
    const sums = new Map<string, Set<string>>();
    for (const { message } of lines) {
      if (message.target === 'appproject') {
        add(sums, message.object.metadata.uid, specChecksum(message.object.spec));
      }
      if (message.target === 'repository') {
        add(sums, message.object.metadata.uid, specChecksum(message.object.data ?? {}));
      }
    }
    let compared = 0;
    for (const { message, seq } of lines) {
      if (message.type !== 'request-update' || !['AppProject', 'Repository'].includes(message.payload.kind)) {
        continue;
      }
      const known = sums.get(message.payload.uid);
      if (known === undefined) {
        continue;
      }
      expect([...known], `line ${seq}`).toContain(message.payload.checksum);
      compared++;
    }
    expect(compared).toBeGreaterThan(10);
  });

  test('the list of an agent that has only projects has the checksum that we make of it', () => {
    // The agent of this recording has the one project that it reports.
    const recorded = read('gpgkey').filter(({ agent, dir }) => agent === 'agent-managed' && dir !== 'principal->agent');
    const update = recorded.find(({ message }) => message.type === 'request-update')?.message;
    const list = recorded.find(({ message }) => message.type === 'request-synced-resource-list')?.message;
    if (update?.type !== 'request-update' || list?.type !== 'request-synced-resource-list') {
      throw new Error('not there');
    }
    const { kind, name, uid } = update.payload;
    expect(list.payload.checksum).toBe(resourceListChecksum([{ kind, name, uid }]));
  });

  test('a project of an autonomous agent becomes what it is made on the hub', () => {
    const last = about('appproject', 'agent->principal').findLast(({ message }) => {
      return message.target === 'appproject' && message.object.spec.roles !== undefined;
    })?.message;
    if (last?.target !== 'appproject') {
      throw new Error('not there');
    }
    expect(referenceMirror(last.object, 'agent-autonomous').spec).toMatchObject({
      sourceNamespaces: ['agent-autonomous'],
      destinations: [{ name: 'agent-autonomous', server: '*', namespace: '*' }],
      roles: [
        {
          policies: [
            'p, proj:agent-autonomous-sample:read-only, applications, get, agent-autonomous-sample/agent-autonomous/*, allow',
            'p, example-user, extensions, invoke, httpbin, allow',
            'p, proj:sample:differentrole, applications, get, sample/*, allow',
            'p, proj:diffproject:read-only, applications, get, sample/*, allow',
          ],
        },
      ],
    });
  });
});

const nothing = () => undefined;
const runtime = processRuntime({ debug: nothing, info: nothing, warn: nothing, error: nothing });

/** What our principal sends to the agent `in-cluster` of the object in a message of a Go principal, which it rewrote. */
async function published(message: Message, principalUid: string): Promise<Message> {
  if (message.target !== 'appproject' && message.target !== 'repository' && message.target !== 'gpgkey') {
    throw new TypeError(message.target);
  }
  const { object } = message;
  const namespace = object.metadata.namespace ?? '';
  const common = { namespace, principalUid, mapping: 'namespace' as const, runtime };
  const project = (name: string): AppProject => ({
    metadata: { name, namespace },
    spec: { sourceNamespaces: ['*'], destinations: [{ name: '*' }] },
  });
  // The rewritten destination matches nobody, so the agent is called like it; what the hub alone has is added.
  const spec = { ...(object as AppProject).spec, sourceNamespaces: ['*'] };
  const kind =
    message.target === 'appproject'
      ? publishAppProjects({ ...common, store: holding<AppProject>({ ...(object as AppProject), spec }) })
      : message.target === 'repository'
        ? publishRepositories({
            ...common,
            store: holding<RepositorySecret>(object as RepositorySecret),
            projects: holding(
              project(Buffer.from(`${(object as RepositorySecret).data?.project}`, 'base64').toString()),
            ),
          })
        : publishGpgKeys({ namespace, runtime, store: holding<GpgKeys>(object as GpgKeys) });
  const stop = stopped();
  const parts = new HubSync({ managed: [kind], runtime });
  parts.start(stop);
  return firstState(
    (connection) => parts.connected('in-cluster', 'managed', connection),
    (ids) => parts.acknowledged('in-cluster', ids),
  );
}

async function publishedByAgent(project: AppProject): Promise<Message> {
  const namespace = project.metadata.namespace ?? '';
  const parts = new AgentSync({
    mode: 'autonomous',
    kinds: [publishOwnAppProjects({ store: holding(project), namespace, runtime })],
    runtime,
  });
  parts.start(stopped());
  return firstState(
    (connection) => parts.connected(connection, { agent: 'agent-autonomous', principalNamespace: '' }),
    (ids) => parts.acknowledged(ids),
  );
}

type Ids = { readonly resourceId: string; readonly eventId: string };

async function firstState(
  connect: (connection: { send(message: Message): boolean; acknowledge(): void }) => void,
  acknowledge: (ids: Ids) => void,
): Promise<Message> {
  let state: Message | undefined;
  const send = (message: Message) => {
    if (message.target === 'resourceResync') {
      queueMicrotask(() => acknowledge(message));
    } else {
      state ??= message;
    }
    return true;
  };
  connect({ send, acknowledge: () => undefined });
  await vi.advanceTimersByTimeAsync(5_000);
  if (state === undefined) {
    throw new Error('nothing was sent');
  }
  return state;
}

function stopped(): AbortSignal {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  return stop.signal;
}

function holding<T extends StoredObject>(object: T): Store<T> {
  const never = () => Promise.reject(new Error('nothing is written here'));
  return {
    subscribe: (listener: (change: StoreChange<T>) => void) => {
      listener({ old: undefined, now: object });
      return () => undefined;
    },
    read: never,
    create: never,
    patch: never,
    delete: never,
  };
}

/** What a receiver makes of a message about an object. */
function meaningOf(message: Message | undefined): object {
  if (message === undefined || message.target === 'resourceResync' || message.type === 'error') {
    throw new TypeError('no message about an object');
  }
  const { metadata, ...content } = message.object as AppProject & RepositorySecret;
  const { name, namespace, uid, resourceVersion, labels, annotations, finalizers, creationTimestamp } = metadata;
  const { spec, data, type } = content;
  return {
    metadata: { name, namespace, uid, resourceVersion, labels, annotations, finalizers, creationTimestamp },
    ...(spec === undefined ? {} : { spec }),
    data,
    type,
  };
}

function add(sums: Map<string, Set<string>>, uid: string | undefined, sum: string): void {
  const known = sums.get(uid ?? '') ?? new Set();
  known.add(sum);
  sums.set(uid ?? '', known);
}
