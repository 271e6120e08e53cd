import type { WireEvent } from '../events/event.ts';

/** Why a stream is not read: its user does not serve the peer now, or has as much of the peer's as it may. */
export type PauseReason = 'unserved' | 'full';

/** An open event stream, seen from either side. */
export interface EventStream {
  /**
   * Hands an event to the connection; it leaves at once, no timer is involved. Nothing is kept for later: an event sent
   * on a stream that ends may be lost, and the caller sends what was not acknowledged again on the next stream.
   *
   * @returns false when the connection cannot take more now: the event itself is taken, further ones should wait for
   *   `onDrain`. Also false, and the event is dropped, once the stream has ended.
   * @throws WireError `too-large` for an event over the message limit: nothing was sent, and sending it again would
   *   fail again
   */
  send(event: WireEvent): boolean;
  /** Sets the one listener that is called when a stream that was full can take more. */
  onDrain(listener: () => void): void;
  /**
   * Stops reading, which makes the peer wait (flow control) before it fills our memory. A principal delivers no further event
   * until `resume`; an agent still delivers what has arrived. A broken connection is still detected. The stream is not read as
   * long as there is a reason.
   */
  pause(reason: PauseReason): void;
  /** This is no reason any more. Goes on reading if there is no other. */
  resume(reason: PauseReason): void;
  /** Ends the stream. The handlers' `closed` is called once, after this. Repeating it does nothing. */
  close(reason?: string): void;
  /** Whether the stream has ended. */
  readonly ended: boolean;
}

/** The handlers of a stream's user. Handlers must not throw; an error that they throw is logged and ends the stream. */
export interface SessionHandlers {
  /** An event from the peer, in the order of arrival, acknowledgements included. Called synchronously: keep it short. */
  event(event: WireEvent): void;
  /** An invalid message was skipped. */
  unreadable?(): void;
  /** The stream has ended; nothing follows. `error` is absent when it ended in order. Called exactly once. */
  closed(error?: Error): void;
}

/**
 * The default limit of messages that either side sends or accepts: 16 MiB. argocd-agent's is 200 MiB. The largest message of
 * its agents is the cached state of an Application: docs/security.md says how large it gets.
 */
export const defaultMaxMessageBytes = 16 * 1024 * 1024;
