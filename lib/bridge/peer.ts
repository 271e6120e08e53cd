import type { Message, PeerConnection } from '../argocd/index.ts';
import {
  acknowledgement,
  type EventStream,
  expectsAcknowledgement,
  isAcknowledgement,
  type WireEvent,
  type WireLogger,
} from '../wire/index.ts';
import { eventOf, messageOf } from './messages.ts';

/** The engine's side of a connection: what it is told. */
export interface PeerListener {
  receive(message: Message): void;
  acknowledged(ids: { resourceId: string; eventId: string }): void;
  /** The connection can take more. */
  writable(): void;
}

/** One connection between the engine and a peer. */
export interface Peer {
  /** For the engine to speak through. */
  readonly connection: PeerConnection;
  /** Takes an event that arrived. Never throws. */
  event(event: WireEvent): void;
}

/** Puts the engine on a stream. `source` is what this side's events name as theirs. */
export function peerOnStream(options: {
  stream: EventStream;
  source: string;
  listener: PeerListener;
  logger: WireLogger;
  /** Counts events. */
  received(): void;
  sent(): void;
  /** Hears of each message that is sent, repetitions included. */
  messageSent?(message: Message): void;
}): Peer {
  const { stream, source, listener, logger } = options;
  let full = false;
  stream.onDrain(() => {
    full = false;
    listener.writable();
  });
  const send = (event: WireEvent) => {
    options.sent();
    logger.debug(brief(event), 'event sent');
    return stream.send(event);
  };
  return {
    connection: {
      send: (message) => {
        if (full) return false;
        options.messageSent?.(message);
        full = !send(eventOf(message, source)) && !stream.ended;
        return true;
      },
      acknowledge: (message) => void send(acknowledgement(addressed(message), source)),
    },
    event: (event) => {
      options.received();
      logger.debug(brief(event), 'event received');
      if (isAcknowledgement(event)) {
        listener.acknowledged(event);
        return;
      }
      let message: Message | undefined;
      try {
        message = messageOf(event);
      } catch (error) {
        logger.warn({ ...brief(event), error }, 'event cannot be read and is skipped');
      }
      if (message !== undefined) {
        listener.receive(message);
        return;
      }
      logger.debug(brief(event), 'event is not for this version');
      if (expectsAcknowledgement(event)) send(acknowledgement(event, source));
    },
  };
}

function brief({ type, target, subject, eventId }: WireEvent): object {
  return { event_type: type, event_target: target, eventId, ...(subject === undefined ? {} : { subject }) };
}

function addressed(message: Message): WireEvent {
  const { resourceId, eventId } = message;
  const principalUid = 'principalUid' in message ? message.principalUid : undefined;
  return {
    type: '',
    target: message.target,
    source: '',
    resourceId,
    eventId,
    extensions: {
      resourceid: resourceId,
      eventid: eventId,
      ...(principalUid === undefined ? {} : { principaluid: principalUid }),
    },
    data: new Uint8Array(),
  };
}
