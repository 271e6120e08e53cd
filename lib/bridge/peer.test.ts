import { expect, test } from 'vitest';
import type { Message } from '../argocd/index.ts';
import { createLogger } from '../ops/index.ts';
import { acknowledgement, type EventStream, eventTypes, heartbeatEvent, type WireEvent } from '../wire/index.ts';
import { eventOf, peerOnStream } from './index.ts';

const ids = { resourceId: 'app_1', eventId: 'app_1_2' };
const object = { metadata: { name: 'app', namespace: 'ns', uid: '1', resourceVersion: '2' }, spec: {} };
const message: Message = { target: 'application', type: 'create', principalUid: 'p', ...ids, object };

function start() {
  const sent: WireEvent[] = [];
  const heard: unknown[] = [];
  const state = { room: true, drained: (): void => undefined, ended: false };
  const stream: EventStream = {
    send: (event) => {
      sent.push(event);
      return state.room;
    },
    onDrain: (listener) => {
      state.drained = listener;
    },
    pause: () => undefined,
    resume: () => undefined,
    close: () => undefined,
    get ended() {
      return state.ended;
    },
  };
  const peer = peerOnStream({
    stream,
    source: 'us',
    logger: createLogger({ level: 'fatal' }),
    listener: {
      receive: (received) => heard.push(received),
      acknowledged: ({ resourceId, eventId }) => heard.push({ resourceId, eventId }),
      writable: () => heard.push('writable'),
    },
    received: () => undefined,
    sent: () => undefined,
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

test('what cannot be read or is not for us is acknowledged, so that it does not come again', () => {
  const { peer, sent, heard } = start();
  peer.event({ ...eventOf(message, 'them'), data: Buffer.from('nonsense') });
  peer.event(heartbeatEvent({ source: 'them' }));
  expect(heard).toEqual([]);
  expect(sent.map(({ target }) => target)).toEqual(['eventProcessed', 'eventProcessed']);
});
