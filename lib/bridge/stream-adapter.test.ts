import { expect, test } from 'vitest';
import type { Message } from '../argocd/index.ts';
import { FairTurns, type TurnLimits } from '../base/index.ts';
import { createLogger } from '../ops/index.ts';
import {
  acknowledgement,
  type EventStream,
  eventTypes,
  heartbeatEvent,
  refusingAcknowledgement,
  WireError,
  type WireEvent,
} from '../wire/index.ts';
import { adaptStream, eventOf, type ReceiveWindowLimits, type SendTurns } from './index.ts';

const oneByOne: TurnLimits = {
  messages: 1,
  bytes: 1_000_000,
  milliseconds: Number.POSITIVE_INFINITY,
  messagesPerPeer: 1,
  millisecondsPerPeer: Number.POSITIVE_INFINITY,
  restFactor: 0,
};
const ids = { resourceId: 'app_1', eventId: 'app_1_2' };
const object = { metadata: { name: 'app', namespace: 'ns', uid: '1', resourceVersion: '2' }, spec: {} };
const message: Message = { target: 'application', type: 'create', principalUid: 'p', ...ids, object };

function start(receiveWindow?: ReceiveWindowLimits, sending?: SendTurns) {
  const sent: WireEvent[] = [];
  const heard: unknown[] = [];
  const state = { room: true, drained: (): void => undefined, ended: false, paused: false, tooLarge: false };
  const stream: EventStream = {
    send: (event) => {
      if (state.tooLarge) {
        throw new WireError('too-large', 'too large');
      }
      sent.push(event);
      return state.room;
    },
    onDrain: (listener) => {
      state.drained = listener;
    },
    pause: () => {
      state.paused = true;
    },
    resume: () => {
      state.paused = false;
    },
    close: () => undefined,
    get ended() {
      return state.ended;
    },
  };
  const peer = adaptStream({
    stream,
    source: 'us',
    logger: createLogger({ level: 'fatal' }),
    listener: {
      receive: (received) => heard.push(received),
      unreadable: ({ target, namespace, name }) => heard.push(`shown ${target} ${namespace}/${name}`),
      acknowledged: ({ resourceId, eventId }) => heard.push({ resourceId, eventId }),
      writable: () => heard.push('writable'),
    },
    other: ({ target }) => heard.push(`other ${target}`),
    unreadable: ({ target }) => heard.push(`unreadable ${target}`),
    refused: (reason) => heard.push(`refused: ${reason}`),
    ...(receiveWindow === undefined ? {} : { receiveWindow }),
    accepts: ({ target }) => target !== 'gpgkey',
    ...(sending === undefined ? {} : { sending }),
  });
  return { peer, sent, heard, state };
}

test('messages go out as events until the stream is full, and again when it has drained', () => {
  const { peer, sent, heard, state } = start();
  state.room = false;
  expect(peer.connection.send(message)).toBe(true);
  expect(peer.connection.send(message)).toBe(false);
  expect(sent).toHaveLength(1);
  state.room = true;
  state.drained();
  expect(heard).toEqual(['writable']);
  expect(peer.connection.send(message)).toBe(true);
});

test('events come in as messages and acknowledgements', () => {
  const { peer, sent, heard } = start();
  const event = eventOf(message, 'them');
  peer.event(event);
  peer.event(acknowledgement(event, 'them'));
  expect(heard).toEqual([message, ids]);
  expect(sent).toEqual([]);
});

test('acknowledgements repeat the ids and the principal', () => {
  const { peer, sent } = start();
  peer.connection.acknowledge(message);
  expect(sent).toEqual([
    expect.objectContaining({
      type: eventTypes.processed,
      target: 'eventProcessed',
      extensions: { resourceid: 'app_1', eventid: 'app_1_2', principaluid: 'p' },
    }),
  ]);
});

test('the acknowledgement of what came carries all its extensions', () => {
  const { peer, sent, heard } = start();
  const event = eventOf(message, 'them');
  const extensions = { ...event.extensions, sentat: '2026-11-21T09:41:36.1Z', traceparent: '00-1-2-01' };
  peer.event({ ...event, extensions });
  peer.connection.acknowledge(heard[0] as Message);
  expect(sent).toEqual([expect.objectContaining({ extensions })]);
});

test('defect 37: defect 45: what cannot be read or is not for us is acknowledged, so that it does not come again', () => {
  const { peer, sent, heard } = start();
  peer.event({ ...eventOf(message, 'them'), data: Buffer.from('nonsense') });
  peer.event(heartbeatEvent({ source: 'them' }));
  expect(heard).toEqual(['shown application ns/app', 'unreadable application', 'other heartbeat']);
  expect(sent.map(({ target }) => target)).toEqual(['eventProcessed', 'eventProcessed']);
});

test('what cannot be read is refused to its sender, with the reason', () => {
  const { peer, sent, heard } = start();
  const event = eventOf(message, 'them');
  const sentAt = { ...event.extensions, sentat: '2026-11-21T09:41:36.1Z' };
  const data = Buffer.from(JSON.stringify({ ...object, spec: 'nonsense' }));
  peer.event({ ...event, extensions: sentAt, data });
  // An agent may name anything.
  peer.event({ ...event, subject: '../etc/passwd', data });
  peer.event({ ...eventOf(message, 'them'), target: 'gpgkey' });
  expect(heard.filter((one) => String(one).startsWith('shown'))).toEqual(['shown application ns/app']);
  expect(sent.map(({ extensions }) => extensions)).toEqual([
    { ...sentAt, refusal: expect.stringMatching(/ spec: .*expected object/) },
    { ...event.extensions, refusal: expect.stringMatching(/ spec: /) },
    { ...event.extensions, refusal: 'events of this kind are not accepted from this peer' },
  ]);
  expect(sent.every(({ extensions }) => (extensions.refusal?.length ?? 0) <= 501)).toBe(true);
});

test('what this side cannot have is acknowledged with the reason', () => {
  const { peer, sent } = start();
  peer.connection.acknowledge(message, 'denied by policy');
  expect(sent).toMatchObject([
    { target: 'eventProcessed', extensions: { eventid: 'app_1_2', refusal: 'denied by policy' } },
  ]);
});

test('a refusal counts as an acknowledgement, so that the event is not sent again as it is', () => {
  const { peer, heard } = start();
  peer.event(refusingAcknowledgement(eventOf(message, 'us'), 'them', 'spec: no object'));
  expect(heard).toEqual(['refused: spec: no object', ids]);
});

test('what the peer may not send is refused before its payload is looked at', () => {
  const { peer, sent, heard } = start();
  const event = eventOf(message, 'them');
  let reads = 0;
  peer.event({
    ...event,
    target: 'gpgkey',
    get data(): Uint8Array {
      reads++;
      return event.data;
    },
  });
  expect(reads).toBe(0);
  expect(heard).toEqual(['unreadable gpgkey']);
  expect(sent.map(({ target }) => target)).toEqual(['eventProcessed']);
});

const numbered = (number: number): Message => ({ ...message, resourceId: `app_${number}`, eventId: `app_${number}_1` });

test('a peer that sends more than is worked off waits, copies count once', () => {
  const { peer, state } = start({ maxEvents: 2, maxBytes: 1_000_000 });
  peer.event(eventOf(numbered(1), 'them'));
  peer.event(eventOf(numbered(1), 'them'));
  expect(state.paused).toBe(false);
  peer.event(eventOf(numbered(2), 'them'));
  expect(state.paused).toBe(true);
  peer.connection.acknowledge(numbered(1));
  expect(state.paused).toBe(false);
});

test('so does one whose events are large', () => {
  const { peer, state } = start({ maxEvents: 100, maxBytes: 10 });
  peer.event(eventOf(numbered(1), 'them'));
  expect(state.paused).toBe(true);
  peer.connection.acknowledge(numbered(1));
  expect(state.paused).toBe(false);
});

test('so does one whose events have long attributes, which are repeated to it', () => {
  const { peer, state } = start({ maxEvents: 100, maxBytes: 20_000 });
  const event = eventOf(numbered(1), 'them');
  peer.event({ ...event, extensions: { ...event.extensions, long: 'x'.repeat(20_000) } });
  expect(state.paused).toBe(true);
  peer.connection.acknowledge(numbered(1));
  expect(state.paused).toBe(false);
});

test('a peer that sends and does not read waits until it has read', () => {
  const { peer, state, sent } = start({ maxEvents: 100, maxBytes: 1_000_000 });
  state.room = false;
  peer.event(heartbeatEvent({ source: 'them' }));
  expect(sent).toHaveLength(1);
  expect(state.paused).toBe(true);
  expect(peer.connection.send(message)).toBe(false);
  state.room = true;
  state.drained();
  expect(state.paused).toBe(false);
});

test('a message over the limit is left to a later attempt, not thrown at whoever caused it', () => {
  const { peer, sent, state } = start();
  state.tooLarge = true;
  expect(peer.connection.send(message)).toBe(true);
  state.tooLarge = false;
  expect(peer.connection.send(message)).toBe(true);
  expect(sent).toHaveLength(1);
});

test('after its turn a peer waits, and is told when it may go on, unless the stream is full or has ended', () => {
  const next: (() => void)[] = [];
  const sending: SendTurns = new FairTurns(oneByOne, (run) => next.push(run));
  const { peer, heard, sent, state } = start(undefined, sending);
  expect([peer.connection.send(message), peer.connection.send(message)]).toEqual([true, false]);
  next.shift()?.();
  expect(heard).toEqual(['writable']);

  state.room = false;
  expect([peer.connection.send(message), peer.connection.send(message)]).toEqual([true, false]);
  next.shift()?.();
  state.room = true;
  state.drained();
  expect(heard, 'once for the turn, once for the stream').toEqual(['writable', 'writable']);

  expect([peer.connection.send(message), peer.connection.send(message)]).toEqual([true, false]);
  state.ended = true;
  next.shift()?.();
  expect(heard).toHaveLength(2);
  expect(sent).toHaveLength(3);
});

test('acknowledgements do not wait for a turn', () => {
  const sending: SendTurns = new FairTurns(oneByOne, () => undefined);
  const { peer, sent } = start(undefined, sending);
  peer.connection.send(message);
  peer.connection.acknowledge(message);
  peer.connection.acknowledge(message);
  expect(sent).toHaveLength(3);
});
