import { type Message, type PeerConnection, Warnings } from '../argocd/index.ts';
import type { Logger } from '../base/index.ts';
import { acknowledgement, type EventStream, isAcknowledgement, WireError, type WireEvent } from '../wire/index.ts';
import { SendTurns } from './fair-sender.ts';
import { eventOf, messageOf } from './messages.ts';
import { Intake, type IntakeLimits } from './receive-window.ts';

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

/**
 * Puts the engine on a stream. `source` is what this side's events name as theirs.
 *
 * With `intake` the peer is made to wait while too much of what it sent is not acknowledged yet, or while it does not read
 * our answers: then its events cost bounded memory whatever it does. Only one side of a connection may do so, else both
 * could wait for each other.
 */
export function peerOnStream(options: {
  stream: EventStream;
  source: string;
  listener: PeerListener;
  logger: Logger;
  /** Hears of each event that arrives and leaves, acknowledgements and repetitions included; for counting. */
  received(event: WireEvent): void;
  sent(event: WireEvent): void;
  /**
   * Takes an event that is about something else than what is to be in step: statistics of the cluster, signs of life. It is
   * acknowledged whatever comes of it.
   */
  other?(event: WireEvent): void;
  /** Hears of an event whose content is not what its kind promises; it is told in the log and acknowledged. */
  unreadable?(event: WireEvent): void;
  /** Adds to an event that carries a message, just before it is sent. */
  outgoing?(event: WireEvent): WireEvent;
  /** Hears of each message that is sent, repetitions included. */
  messageSent?(message: Message): void;
  /** Hears of an event that is too large to be sent; it is told in the log. */
  unsendable?(event: WireEvent): void;
  intake?: IntakeLimits;
  /** Shared by all peers of the process. Default: the peer's own. */
  turns?: SendTurns;
}): Peer {
  const { stream, source, listener, logger, turns = new SendTurns() } = options;
  const intake = options.intake && new Intake(options.intake);
  /** An acknowledgement carries all extensions of what it acknowledges, as with argocd-agent. */
  const extensions = new WeakMap<Message, WireEvent['extensions']>();
  const warnings = new Warnings(logger);
  let full = false;
  let paused = false;
  const regulate = () => {
    if (intake === undefined || paused === (full || intake.isFull)) {
      return;
    }
    paused = !paused;
    if (paused) {
      stream.pause();
    } else {
      stream.resume();
    }
  };
  stream.onDrain(() => {
    full = false;
    regulate();
    listener.writable();
  });
  const goOn = () => {
    // A full stream says when it has drained.
    if (!full && !stream.ended) {
      listener.writable();
    }
  };
  const send = (event: WireEvent) => {
    options.sent(event);
    logger.debug(brief(event), 'event sent');
    full = !stream.send(event) && !stream.ended;
  };
  const acknowledge = (event: WireEvent) => {
    send(acknowledgement(event, source));
    intake?.acknowledged(event);
    regulate();
  };
  const take = (event: WireEvent) => {
    let message: Message | undefined;
    try {
      message = messageOf(event);
    } catch (error) {
      warnings.warn({ ...brief(event), error }, 'event cannot be read and is skipped');
      options.unreadable?.(event);
      acknowledge(event);
      return;
    }
    if (message !== undefined) {
      extensions.set(message, event.extensions);
      listener.receive(message);
      return;
    }
    if (options.other === undefined) {
      logger.debug(brief(event), 'event is not for this version');
    } else {
      options.other(event);
    }
    acknowledge(event);
  };
  return {
    connection: {
      send: (message) => {
        if (full || !turns.mayI(goOn)) {
          return false;
        }
        const event = eventOf(message, source);
        turns.sent(goOn, event.data.byteLength);
        try {
          send(options.outgoing?.(event) ?? event);
          options.messageSent?.(message);
        } catch (error) {
          if (!(error instanceof WireError) || error.code !== 'too-large') {
            throw error;
          }
          // Taken, as far as the engine is concerned: it tries again later, when the object may be smaller.
          logger.error({ hint: error.hint }, error.message);
          options.unsendable?.(event);
        }
        return true;
      },
      acknowledge: (message) => acknowledge(addressed(message, extensions.get(message))),
    },
    event: (event) => {
      options.received(event);
      logger.debug(brief(event), 'event received');
      if (isAcknowledgement(event)) {
        listener.acknowledged(event);
        return;
      }
      intake?.received(event);
      take(event);
      regulate();
    },
  };
}

function brief({ type, target, subject, eventId }: WireEvent): object {
  return { event_type: type, event_target: target, eventId, ...(subject === undefined ? {} : { subject }) };
}

/** The event that a message came in; without its extensions where it came over an earlier connection. */
function addressed(message: Message, extensions?: WireEvent['extensions']): WireEvent {
  const { resourceId, eventId } = message;
  const principalUid = 'principalUid' in message ? message.principalUid : undefined;
  return {
    type: '',
    target: message.target,
    source: '',
    resourceId,
    eventId,
    extensions: extensions ?? {
      resourceid: resourceId,
      eventid: eventId,
      ...(principalUid === undefined ? {} : { principaluid: principalUid }),
    },
    data: new Uint8Array(),
  };
}
