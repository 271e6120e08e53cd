import { randomUUID } from 'node:crypto';
import {
  agentSource,
  type EventObject,
  encodeEvent,
  eventTypes,
  grpcStatus,
  heartbeatEvent,
  isAcknowledgement,
  LogStreamData,
  messageEvent,
  objectEvent,
  paths,
  statusName,
  TerminalStreamData,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { Event, PushSummary } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { type ConformanceCase, must, Skipped } from './case.ts';
import type { PlayedStream, Player } from './player.ts';

const origin = { source: agentSource };
const { canceled, notFound, ok, unauthenticated, unavailable, unimplemented } = grpcStatus;
/** The codes after which agents of the original come back. */
const comesBack: readonly number[] = [ok, canceled, unauthenticated, unavailable];

/** An object that is nowhere: nothing can happen to it. */
const nowhere = (): EventObject => ({
  metadata: { name: `conformance-${randomUUID().slice(0, 8)}`, uid: randomUUID(), resourceVersion: '1' },
});
const resync = (type: string, payload: unknown) => messageEvent(targets.resourceResync, type, payload, origin);
const requestUpdate = ({ metadata: { name, uid } }: EventObject) =>
  resync(eventTypes.requestUpdate, {
    name,
    namespace: 'argocd',
    uid,
    kind: 'Application',
    checksum: Buffer.alloc(32).toString('base64'),
  });

/** After what no agent sends: the stream goes on, or it has ended so that agents come back. */
async function survives(stream: PlayedStream, player: Player): Promise<string> {
  try {
    await stream.talk.exchange(heartbeatEvent(origin), 'a heartbeat afterwards');
    return 'it is left out, the stream goes on';
  } catch (error) {
    if (!stream.talk.isOver) {
      throw error;
    }
  }
  const end = await stream.ending();
  const code = end?.code ?? ok;
  must(comesBack.includes(code), `the stream ends with ${statusName(code)}, from which agents do not come back`);
  const next = await player.subscribe();
  await next.talk.exchange(heartbeatEvent(origin), 'a heartbeat on the next stream');
  return `the stream ends with ${statusName(code)}, the next one works`;
}

function onlyFor(player: Player, mode: string): void {
  if (player.options.mode !== mode) {
    throw new Skipped(`only in mode ${mode}`);
  }
}

/** A case that sends an event which must be acknowledged. */
function acknowledged(name: string, section: string, made: () => WireEvent, mode?: string): ConformanceCase<Player> {
  return {
    name: `${name} is acknowledged`,
    section,
    async run(player) {
      if (mode !== undefined) {
        onlyFor(player, mode);
      }
      const stream = await player.subscribe();
      await stream.talk.exchange(made(), name);
      return 'acknowledged';
    },
  };
}

/** A case that sends bytes which the principal must bear. */
function borne(name: string, section: string, bytes: () => Uint8Array): ConformanceCase<Player> {
  return {
    name: `${name} does no lasting harm`,
    section,
    async run(player) {
      const stream = await player.subscribe();
      stream.sendBytes(bytes());
      return survives(stream, player);
    },
  };
}

/** A case that opens a live stream which nobody asked for. */
function unasked(name: string, section: string, path: string, first: () => Uint8Array, codes?: readonly number[]) {
  return {
    name,
    section,
    async run(player: Player) {
      const stream = await player.subscribe();
      const { accessToken } = await stream.connection.authenticate();
      const call = stream.connection.stream(path, accessToken);
      const ending = stream.connection.ending(call);
      call.send(first());
      const code = (await ending)?.code ?? ok;
      must(codes?.includes(code) ?? code !== ok, `it ends with ${statusName(code)}`);
      await stream.talk.exchange(heartbeatEvent(origin), 'a heartbeat afterwards');
      return `it ends with ${statusName(code)}, the event stream goes on`;
    },
  };
}

const requestUuid = () => ({ requestUuid: randomUUID() });

/** The cases about the event stream, for a principal. The first one needs that nobody has connected as this agent before. */
export const streamCases: readonly ConformanceCase<Player>[] = [
  {
    name: 'what is not acknowledged comes again on the next stream',
    section: 'Acknowledgements',
    async run(player) {
      const first = await player.subscribe();
      first.talk.keepSilent(() => true);
      const event = await first.talk
        .expect((one) => !isAcknowledgement(one), 'an event of the principal')
        .catch(() => {
          throw new Skipped('the principal has nothing to say to this agent');
        });
      const next = await player.subscribe();
      const isSame = (one: WireEvent) =>
        one.target === event.target &&
        one.type === event.type &&
        (one.eventId === event.eventId || one.subject === event.subject);
      await next.talk.expect(isSame, `${event.target} ${event.type} again`);
      return `${event.target} ${event.type}`;
    },
  },
  {
    name: 'events of the principal have all their attributes',
    section: 'Events',
    async run(player) {
      const stream = await player.subscribe();
      const asked = nowhere();
      onlyFor(player, 'managed');
      stream.talk.send(requestUpdate(asked));
      const event = await stream.talk.expect((one) => !isAcknowledgement(one), 'an event of the principal');
      const { sentat = '', resourceid, eventid } = event.extensions;
      must(resourceid !== undefined && eventid !== undefined, `${event.type} lacks resourceid or eventid`);
      must(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$/.test(sentat), `sentat of ${event.type} is "${sentat}"`);
      must(
        event.data.length === 0 || event.contentType === 'application/json',
        `the type of its data is ${event.contentType}`,
      );
      return `${event.target} ${event.type}, sent ${sentat}`;
    },
  },
  {
    name: 'a heartbeat is acknowledged with all its extensions',
    section: 'Acknowledgements',
    async run(player) {
      const stream = await player.subscribe();
      const beat = heartbeatEvent(origin);
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const sent = { ...beat, extensions: { ...beat.extensions, traceparent: trace } };
      const answer = await stream.talk.exchange(sent, 'a heartbeat');
      must(answer.type === eventTypes.processed, `the type of the acknowledgement is ${answer.type}`);
      must(answer.data.length === 0, 'the acknowledgement has data');
      for (const [name, value] of Object.entries(sent.extensions)) {
        must(
          answer.extensions[name] === value,
          `${name} is ${answer.extensions[name]} in the acknowledgement, not ${value}`,
        );
      }
      must(!stream.talk.received.some(({ type }) => type === eventTypes.pong), 'there is a pong');
      return `extensions ${Object.keys(answer.extensions).sort().join(', ')}`;
    },
  },
  {
    name: 'an event that comes twice is acknowledged twice',
    section: 'Acknowledgements',
    async run(player) {
      const stream = await player.subscribe();
      const event = resync(eventTypes.requestSyncedResourceList, { checksum: null });
      await stream.talk.exchange(event, 'the event');
      await stream.talk.exchange(event, 'its repetition');
      return 'acknowledged twice';
    },
  },
  acknowledged('a heartbeat', 'Heartbeats', () => heartbeatEvent(origin)),
  acknowledged(
    'the size of the cache of a cluster',
    'Cluster information',
    () =>
      messageEvent(
        targets.clusterCacheInfoUpdate,
        eventTypes.clusterCacheInfoUpdate,
        { applicationsCount: 0, apisCount: 0, resourcesCount: 0 },
        origin,
      ),
    'managed',
  ),
  acknowledged(
    'a status of an Application that the hub does not have',
    'Types',
    () => objectEvent(targets.application, eventTypes.statusUpdate, nowhere(), origin),
    'managed',
  ),
  acknowledged(
    'an AppProject of a managed agent, which may send none,',
    'Types',
    () => objectEvent(targets.appProject, eventTypes.specUpdate, nowhere(), origin),
    'managed',
  ),
  acknowledged('an answer that nobody waits for', 'Resources', () =>
    messageEvent(targets.resource, eventTypes.response, { uuid: randomUUID(), status: 200, resource: '{}' }, origin),
  ),
  acknowledged('a resync message from the wrong side', 'Resync', () => resync(eventTypes.requestResourceResync, {})),
  {
    name: 'asked about an Application that it does not have, the principal says delete',
    section: 'Resync',
    async run(player) {
      onlyFor(player, 'managed');
      const stream = await player.subscribe();
      const asked = nowhere();
      const { name, uid } = asked.metadata;
      await stream.talk.exchange(requestUpdate(asked), 'the question');
      const isAnswer = ({ target, type, data }: WireEvent) =>
        target === targets.application && type === eventTypes.delete && Buffer.from(data).includes(name);
      const answer = await stream.talk.expect(isAnswer, `a delete of ${name}`);
      const object = JSON.parse(Buffer.from(answer.data).toString('utf8')) as Partial<EventObject>;
      must(object.metadata?.uid === uid, `its uid is ${object.metadata?.uid}, not that of the question, ${uid}`);
      must(answer.resourceId === `${name}_${uid}`, `its resourceid is ${answer.resourceId}`);
      return `delete ${answer.resourceId}`;
    },
  },
  acknowledged('data that is no JSON', 'Malformed events', () => ({
    ...resync(eventTypes.requestUpdate, {}),
    data: Buffer.from('{"name":'),
  })),
  borne('a message that is no protobuf', 'Malformed events', () => Buffer.from([0x0a, 0x05, 0xff])),
  borne('a message without event', 'Malformed events', () => new Uint8Array()),
  borne('an event of an unknown target', 'Malformed events', () =>
    encoded({ ...heartbeatEvent(origin), target: 'conformance' }),
  ),
  borne('an event without ids', 'Malformed events', () => {
    const event = encodeEvent(heartbeatEvent(origin));
    const { resourceid: _, eventid: __, ...attributes } = event.attributes;
    return Event.encode({ event: { ...event, attributes } }).finish();
  }),
  borne('an event of 1,000 attributes', 'Limits', () => {
    const more = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`x${index}`, 'x']));
    const beat = heartbeatEvent(origin);
    return encoded({ ...beat, extensions: { ...beat.extensions, ...more } });
  }),
  {
    name: 'a newer stream takes the place of the older one',
    section: 'Event stream',
    async run(player) {
      const older = await player.subscribe();
      await older.talk.exchange(heartbeatEvent(origin), 'a heartbeat on the first stream');
      const newer = await player.subscribe();
      await newer.talk.exchange(heartbeatEvent(origin), 'a heartbeat on the second stream');
      if (!older.talk.isOver) {
        return 'the older one stays open';
      }
      const code = (await older.ending())?.code ?? ok;
      must(comesBack.includes(code), `the older one ends with ${statusName(code)}, from which agents do not come back`);
      return `the older one ends with ${statusName(code)}`;
    },
  },
  {
    name: 'Push takes events, which are acknowledged on the event stream',
    section: 'Event stream',
    async run(player) {
      onlyFor(player, 'managed');
      const stream = await player.subscribe();
      await stream.talk.exchange(heartbeatEvent(origin), 'a heartbeat before');
      const { accessToken } = await stream.connection.authenticate();
      const call = stream.connection.stream(paths.push, accessToken);
      const event = objectEvent(targets.application, eventTypes.statusUpdate, nowhere(), origin);
      const summary = Promise.withResolvers<PushSummary>();
      call.listen({
        message: (bytes) => summary.resolve(PushSummary.decode(bytes)),
        end: (error) => summary.reject(error ?? new Error('Push ends without a summary')),
      });
      call.send(encoded(event));
      call.halfClose();
      await stream.talk.expect(
        (one) => isAcknowledgement(one) && one.eventId === event.eventId,
        'the event is acknowledged',
      );
      const { received } = await summary.promise;
      must(received === 1, `the summary counts ${received} events; wanted 1`);
      return `${received} received`;
    },
  },
  unasked(
    'a log that nobody asked for is refused',
    'Logs',
    paths.streamLogs,
    () => LogStreamData.encode(LogStreamData.fromPartial({ ...requestUuid(), data: Buffer.from('x') })).finish(),
    [notFound, unimplemented],
  ),
  unasked('a terminal that nobody asked for is refused', 'Terminals', paths.streamTerminal, () =>
    TerminalStreamData.encode(TerminalStreamData.fromPartial(requestUuid())).finish(),
  ),
];

const encoded = (event: WireEvent): Uint8Array => Event.encode({ event: encodeEvent(event) }).finish();
