import { type Message, type PeerConnection, type UnreadableMessage, Warnings } from '../argocd/index.ts';
import { FairTurns, type Logger, type TurnLimits } from '../base/index.ts';
import {
  acknowledgement,
  type EventStream,
  isAcknowledgement,
  refusedReason,
  refusingAcknowledgement,
  WireError,
  type WireEvent,
} from '../wire/index.ts';
import type { ConnectionObserver } from './connection-observer.ts';
import { eventOf, messageOf, unreadableMessage } from './messages.ts';
import { ReceiveWindow, type ReceiveWindowLimits } from './receive-window.ts';

/** The turns in which the peers of a process send. A peer is known by its function that resumes. */
export type SendTurns = FairTurns<() => void>;

/** Some milliseconds of work. */
const defaultSendLimits: TurnLimits = {
  messages: 32,
  bytes: 512 * 1024,
  milliseconds: Number.POSITIVE_INFINITY,
  messagesPerPeer: 8,
  millisecondsPerPeer: Number.POSITIVE_INFINITY,
  restFactor: 0,
};

/** Turns for the peers of a process. */
export function sendTurns(): SendTurns {
  return new FairTurns(defaultSendLimits);
}

/** What the delivery engine is notified of on a connection. */
export interface EngineListener {
  receive(message: Message): void;
  /** An event about an object cannot be read, and was refused: this side shows it where people look. */
  unreadable(message: UnreadableMessage): void;
  acknowledged(ids: { resourceId: string; eventId: string }): void;
  /** The connection can take more. */
  writable(): void;
}

/** One connection between the engine and a peer, on an event stream. */
export interface StreamAdapter {
  /** The engine sends through it. */
  readonly connection: PeerConnection;
  /** Takes an event that arrived. Never throws. */
  event(event: WireEvent): void;
}

/**
 * Connects the delivery engine with an event stream. `source` is the CloudEvent source of this side's events.
 *
 * With `receiveWindow` reading stops while too many of the peer's events are unacknowledged, or while the peer does not
 * read our answers; so the events of a peer cost bounded memory. Only one side of a connection may do this, otherwise both
 * could wait for each other.
 */
export function adaptStream(options: {
  stream: EventStream;
  source: string;
  listener: EngineListener;
  logger: Logger;
  /** Called for each event, acknowledgements and repetitions included; `outgoing` only for events that carry messages. */
  observer?: Pick<ConnectionObserver, 'received' | 'outgoing' | 'sent'> & Partial<Pick<ConnectionObserver, 'within'>>;
  /** Takes an event that is no message of the engine: statistics of the cluster, heartbeats. It is acknowledged in any case. */
  other?(event: WireEvent): void;
  /** Called for an event whose payload does not fit its target and type; it is logged, shown, and refused to the peer. */
  unreadable?(event: WireEvent): void;
  /** Called when the peer refuses an event, with the reason. */
  refused?(reason: string): void;
  /** Called for each message that is sent, repetitions included. */
  messageSent?(message: Message): void;
  /** Called for an event that is too large to be sent; it is logged. */
  unsendable?(event: WireEvent): void;
  receiveWindow?: ReceiveWindowLimits;
  /** Whether the peer may send such a message. Any other is refused before its payload is parsed. Default: all. */
  accepts?(event: WireEvent): boolean;
  /** Shared by all peers of the process. Default: the peer's own. */
  sending?: SendTurns;
}): StreamAdapter {
  const { stream, source, listener, logger, sending = sendTurns() } = options;
  const receiveWindow = options.receiveWindow && new ReceiveWindow(options.receiveWindow);
  /** An acknowledgement carries all extensions of what it acknowledges, as with argocd-agent. */
  const extensions = new WeakMap<Message, WireEvent['extensions']>();
  const warnings = new Warnings(logger);
  let full = false;
  let paused = false;
  const regulate = () => {
    if (receiveWindow === undefined || paused === (full || receiveWindow.isFull)) {
      return;
    }
    paused = !paused;
    if (paused) {
      stream.pause('full');
    } else {
      stream.resume('full');
    }
  };
  stream.onDrain(() => {
    full = false;
    regulate();
    listener.writable();
  });
  const resume = () => {
    // A full stream reports when it has drained.
    if (!full && !stream.ended) {
      listener.writable();
    }
  };
  const send = (event: WireEvent) => {
    options.observer?.sent(event);
    logger.debug(brief(event), 'event sent');
    full = !stream.send(event) && !stream.ended;
  };
  const answer = (event: WireEvent, acknowledging: WireEvent) => {
    send(acknowledging);
    receiveWindow?.acknowledged(event);
    regulate();
  };
  const acknowledge = (event: WireEvent) => answer(event, acknowledgement(event, source));
  const refuse = (event: WireEvent, reason: string) => {
    options.unreadable?.(event);
    answer(event, refusingAcknowledgement(event, source, reason));
  };
  const take = (event: WireEvent) => {
    if (options.accepts?.(event) === false) {
      warnings.warn(brief(event), 'the peer may not send events of this kind, the event is refused');
      refuse(event, 'events of this kind are not accepted from this peer');
      return;
    }
    let message: Message | undefined;
    try {
      message = messageOf(event);
    } catch (error) {
      warnings.warn({ ...brief(event), error }, 'event cannot be read and is refused');
      const reason = error instanceof Error ? error.message : String(error);
      const unreadable = unreadableMessage(event, reason);
      if (unreadable !== undefined) {
        listener.unreadable(unreadable);
      }
      refuse(event, reason);
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
        if (full || !sending.tryAcquire(resume, resume)) {
          return false;
        }
        const event = eventOf(message, source);
        sending.used(resume, event.data.byteLength);
        try {
          send(options.observer?.outgoing(event) ?? event);
          options.messageSent?.(message);
        } catch (error) {
          if (!(error instanceof WireError) || error.code !== 'too-large') {
            throw error;
          }
          // The engine counts it as sent and tries again later, when the object may be smaller.
          logger.error({ hint: error.hint }, error.message);
          options.unsendable?.(event);
        }
        return true;
      },
      acknowledge: (message, refusal) => {
        const event = addressed(message, extensions.get(message));
        answer(
          event,
          refusal === undefined ? acknowledgement(event, source) : refusingAcknowledgement(event, source, refusal),
        );
      },
    },
    event: (event) => {
      options.observer?.received(event);
      logger.debug(brief(event), 'event received');
      if (isAcknowledgement(event)) {
        const reason = refusedReason(event);
        if (reason !== undefined) {
          warnings.warn({ ...brief(event), reason }, 'the peer refuses an event, which is not sent again as it is');
          options.refused?.(reason);
        }
        listener.acknowledged(event);
        return;
      }
      receiveWindow?.received(event);
      if (options.observer?.within === undefined) {
        take(event);
      } else {
        options.observer.within(event, () => take(event));
      }
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
