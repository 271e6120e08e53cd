import { describe, expect, test } from 'vitest';
import { eventLines } from '../../../e2e/recordings/index.ts';
import { wellKnown } from '../../base/index.ts';
import {
  type Application,
  type ApplicationMessage,
  annotations,
  applicationSchema,
  type Message,
  specChecksum,
} from '../index.ts';
import { Lab, LabCluster, sentMessages } from '../testing/lab.ts';
import { hubSpecOf } from './mirror.ts';
import { StageAgent, StagePrincipal } from './testing/stage.ts';

// What a Go principal and a Go autonomous agent sent to each other about Applications.
const agentName = 'agent-autonomous';

interface Recorded {
  readonly seq: number;
  readonly isFromAgent: boolean;
  readonly message: Message;
}

interface DecodedEvent {
  readonly type?: string;
  readonly attributes?: Readonly<Record<string, string | { readonly ce_uri: string }>>;
  readonly dataJson?: object;
}

function recorded(name: string): Recorded[] {
  return eventLines(name).flatMap(({ seq, dir, agent, ...line }) => {
    const decoded = line.decoded as DecodedEvent | undefined;
    const { dataschema, resourceid: resourceId, eventid: eventId } = decoded?.attributes ?? {};
    const target = typeof dataschema === 'object' ? dataschema.ce_uri : '';
    const type = decoded?.type?.slice(decoded.type.lastIndexOf('.') + 1);
    if (agent !== agentName || (target !== 'application' && target !== 'resourceResync')) {
      return [];
    }
    const body =
      target === 'application'
        ? { object: applicationSchema.parse(decoded?.dataJson) }
        : { payload: decoded?.dataJson };
    const message = { target, type, resourceId, eventId, ...body } as unknown as Message;
    return [{ seq, isFromAgent: dir === 'agent->principal', message }];
  });
}

const applications = (file: string) =>
  recorded(file).flatMap(({ message, ...rest }) =>
    message.target === 'application' && message.type !== 'error' ? [{ ...rest, message }] : [],
  );

/** What both principals must agree on; the hub's own and kubectl's annotations aside. */
function decided({ metadata, spec, status, operation }: Application) {
  const own: readonly string[] = [
    annotations.lastUpdated,
    annotations.reportedOperation,
    annotations.lastApplied,
    annotations.refresh,
    wellKnown.skipReconcileAnnotation,
  ];
  const marks = Object.entries(metadata.annotations ?? {}).filter(([key]) => !own.includes(key));
  return {
    labels: metadata.labels ?? {},
    annotations: Object.fromEntries(marks),
    finalizers: metadata.finalizers ?? [],
    spec: withoutEmpty(spec),
    status: withoutEmpty(status ?? {}),
    operation: operation === undefined ? undefined : withoutEmpty(operation),
  };
}

// Go's typed objects say `""` and `{}` where the raw object says nothing.
function withoutEmpty(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return value;
  }
  const entries = Object.entries(value).map(([key, item]) => [key, withoutEmpty(item)] as const);
  return Object.fromEntries(
    entries.filter(
      ([, item]) => item !== '' && item !== null && !(typeof item === 'object' && Object.keys(item).length === 0),
    ),
  );
}

describe('recordings of Go peers', () => {
  test.each(['app-autonomous', 'refresh', 'terminate', 'resync'])(
    'a principal that hears the agent of %s shows what a Go principal showed, and asks what it asked',
    async (file) => {
      const lab = new Lab();
      const principal = new StagePrincipal(lab, { agent: agentName });
      const hub = lab.hub.objects;
      principal.connect();
      let compared = 0;
      for (const { seq, isFromAgent, message } of applications(file)) {
        const { name, deletionTimestamp } = message.object.metadata;
        const ref = { namespace: agentName, name };
        if (isFromAgent) {
          principal.receive(message);
          await lab.run();
          expect(principal.acknowledged.at(-1), `line ${seq}`).toBe(
            `${message.type} ${message.resourceId} ${message.eventId}`,
          );
          expect(hub.get(ref) === undefined, `line ${seq}`).toBe(message.type === 'delete');
        } else if (deletionTimestamp === undefined) {
          const mirror = hub.get(ref) as Application;
          await askAsRecorded(message, mirror);
          compared++;
        }
      }
      expect(compared).toBeGreaterThan(0);

      /** The recording shows what a user had done to the mirror: done here, it leads to the same message. */
      async function askAsRecorded({ type, object }: ApplicationMessage, mirror: Application) {
        const refresh = object.metadata.annotations?.[annotations.refresh];
        const ref = { namespace: agentName, name: mirror.metadata.name };
        const before = principal.sent.length;
        if (type === 'set-operation') {
          hub.patch(ref, { operation: object.operation });
        } else if (type === 'terminate-operation') {
          hub.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
        } else if (refresh !== undefined) {
          hub.patch(ref, { metadata: { annotations: { [annotations.refresh]: refresh } } });
        } else {
          // Whatever else users do to a mirror stays on the hub: a Go agent does nothing with it.
          const { operation: _, ...state } = decided(mirror);
          expect(decided(object)).toMatchObject(state);
          return;
        }
        await lab.run();
        const sent = principal.sent.slice(before).filter((one) => one.target === 'application');
        expect(sent).toMatchObject([{ type, object: { metadata: { name: mirror.metadata.name } } }]);
        expect(decided((sent[0] as ApplicationMessage).object)).toEqual(decided(object));
      }
    },
  );

  test.each(['app-autonomous', 'refresh', 'terminate', 'resync'])(
    'an agent with the Applications of %s tells of them as a Go agent did, attribute by attribute',
    async (file) => {
      const lab = new Lab();
      const cluster = new Replay(lab);
      const agent = new StageAgent(lab, cluster, 'argocd-autonomous');
      agent.connect();
      await lab.run(5_000);
      const fromAgent = applications(file).filter(({ isFromAgent }) => isFromAgent);
      let version = '';
      for (const { seq, message } of fromAgent) {
        const { object, type } = message;
        const before = sentMessages(agent, type).length;
        cluster.show(type === 'delete' ? undefined : object, object);
        await lab.run();
        const { resourceVersion, deletionTimestamp } = object.metadata;
        if (type !== 'delete' && (resourceVersion === version || deletionTimestamp !== undefined)) {
          // A Go agent says again what it is asked about, and that a deletion has begun, which changes no mirror.
          continue;
        }
        version = object.metadata.resourceVersion ?? '';
        const [sent, ...more] = sentMessages(agent, type).slice(before);
        expect(more, `line ${seq}`).toEqual([]);
        expect(sent?.resourceId, `line ${seq}`).toBe(message.resourceId);
        if (type === 'delete') {
          const { uid, name, namespace } = object.metadata;
          expect(sent?.object.metadata).toMatchObject({ uid, name, namespace });
        } else {
          expect(sent?.object, `line ${seq}`).toEqual(object);
          // A Go agent says an old state again, which looks like a restore here: from then on, ids carry a mark.
          const [id, mark] = [
            sent?.eventId.slice(0, message.eventId.length),
            sent?.eventId.slice(message.eventId.length),
          ];
          expect(id, `line ${seq}`).toBe(message.eventId);
          expect(mark, `line ${seq}`).toMatch(/^(_[0-9a-z]+)?$/);
        }
      }
    },
  );

  test.each<[string, string]>([
    ['app-autonomous', 'set-operation'],
    ['terminate', 'set-operation'],
    ['terminate', 'terminate-operation'],
    ['refresh', 'spec-update'],
  ])('in %s, an agent that gets %s from a Go principal does what its user wanted, once', async (file, type) => {
    const lab = new Lab();
    const agent = new StageAgent(lab, new LabCluster('agent', lab.time), 'argocd-autonomous');
    const all = applications(file);
    const index = all.findIndex(({ isFromAgent, message: { type: is, object } }) => {
      const isRefresh = object.metadata.annotations?.[annotations.refresh] !== undefined;
      return !isFromAgent && is === type && (type !== 'spec-update' || isRefresh);
    });
    const earlier = all.slice(0, index).findLast(({ isFromAgent }) => isFromAgent);
    const request = all[index];
    if (request === undefined || earlier === undefined) {
      throw new Error(`no ${type} in ${file}`);
    }
    const { uid: _, resourceVersion: __, ...metadata } = earlier.message.object.metadata;
    const { uid } = agent.cluster.objects.create({ ...earlier.message.object, metadata }).metadata;
    // The cluster of the test gives out UIDs of its own.
    const marks = { ...request.message.object.metadata.annotations, [annotations.sourceUid]: uid as string };
    const object = { ...request.message.object, metadata: { ...request.message.object.metadata, annotations: marks } };
    agent.connect();
    const writes = agent.cluster.writes;
    agent.receive({ ...request.message, object });
    agent.receive({ ...request.message, object });
    await lab.run();
    const local = agent.cluster.objects.get({ namespace: 'argocd-autonomous', name: metadata.name });
    expect(agent.cluster.writes - writes).toBe(1);
    expect(agent.acknowledged).toHaveLength(1);
    switch (type) {
      case 'set-operation':
        expect(local?.operation).toEqual(object.operation);
        break;
      case 'terminate-operation':
        expect(local?.status?.operationState?.phase).toBe('Terminating');
        break;
      default:
        expect(local?.metadata.annotations?.[annotations.refresh]).toBe('normal');
        expect(local?.spec).toEqual(earlier.message.object.spec);
    }
  });

  test('the checksum that a Go principal sends for a mirror is told from the Application that it shows', () => {
    let source: Application | undefined;
    const isEqual: boolean[] = [];
    for (const { isFromAgent, message } of recorded('resync')) {
      if (message.target === 'application' && isFromAgent && message.type !== 'error') {
        source = message.object;
      } else if (message.target === 'resourceResync' && message.type === 'request-update' && source !== undefined) {
        isEqual.push(message.payload.checksum === specChecksum(hubSpecOf(source, agentName)));
      }
    }
    // The second mirror had been changed while its principal was away.
    expect(isEqual).toEqual([true, true, false, false]);
  });
});

/** A cluster that shows recorded objects as they were. */
class Replay extends LabCluster {
  #listener: Parameters<LabCluster['subscribe']>[0] = () => undefined;
  #now: Application | undefined;

  constructor(lab: Lab) {
    super('agent', lab.time);
  }

  override subscribe(listener: Parameters<LabCluster['subscribe']>[0]): () => void {
    this.#listener = listener;
    return () => undefined;
  }

  show(now: Application | undefined, last: Application): void {
    const old = this.#now;
    // A store tells of each state once, also of none.
    if (old?.metadata.resourceVersion === now?.metadata.resourceVersion) {
      return;
    }
    this.#now = now;
    this.#listener({ old: now === undefined ? last : old, now });
  }
}
