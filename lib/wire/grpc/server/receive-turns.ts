import { FairTurns, type TurnLimits } from '../../../base/index.ts';
import { isStranger } from './client-of.ts';

/**
 * How much is read in one turn of the event loop. The work on a message goes on after it was delivered, so a turn has few
 * messages even if each of them is delivered quickly.
 */
const agentLimits: TurnLimits = {
  messages: 128,
  bytes: 2 * 1024 * 1024,
  milliseconds: 20,
  messagesPerPeer: 32,
  millisecondsPerPeer: 5,
  // Of messages that take long, those of one peer have at most a quarter of the time.
  restFactor: 3,
  // A quarter of the time also for many small ones. The burst is the first synchronisation of 10,000 Applications.
  share: { perSecond: 250, burst: 4_000, perMessage: 0.05 },
};
/** The same for all strangers together: little of each turn, whatever their number. A fleet that logs in is no more than the burst. */
const strangerLimits: TurnLimits = { ...agentLimits, messages: 16, bytes: 256 * 1024, milliseconds: 5 };

/** The turns in which calls begin and messages are processed. Strangers have a queue of their own, so that no agent waits behind them. */
export class ReceiveTurns {
  readonly #agents = new FairTurns<string>(agentLimits);
  readonly #strangers = new FairTurns<string>(strangerLimits);

  /** See {@link FairTurns.tryAcquire}. */
  tryAcquire(peer: string, resume: () => void): boolean {
    return this.#of(peer).tryAcquire(peer, resume);
  }

  /** See {@link FairTurns.withdraw}. */
  withdraw(resume: () => void): void {
    this.#agents.withdraw(resume);
    this.#strangers.withdraw(resume);
  }

  /** See {@link FairTurns.used}. */
  used(peer: string, bytes: number, milliseconds: number): void {
    this.#of(peer).used(peer, bytes, milliseconds);
  }

  #of(peer: string): FairTurns<string> {
    return isStranger(peer) ? this.#strangers : this.#agents;
  }
}
