import { sleep } from '../../lib/base/index.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';
import { eventSubject } from './presence.ts';

/** What only time tells: it has to be looked at. */
const everyMs = 60_000;
/** Applications of one agent that are reported at the same time; the agent is reported as well. */
const mostApplications = 100;
/** Applications of all agents that are remembered as reported. */
const mostRemembered = 10_000;

/** An Application whose change an agent has not acknowledged. */
export interface LateApplication {
  readonly namespace: string;
  readonly name: string;
  /** For how long the change has waited, in milliseconds. */
  readonly ms: number;
}

/** What {@link watchFleet} looks at. */
export interface WatchedFleet {
  /** The connected agents, and for how long the oldest change of each has waited, in milliseconds. */
  agents(): Iterable<{ readonly agent: string; readonly oldestMs: number }>;
  /** Of an agent, at most so many Applications whose changes have waited for longer. */
  lateApplications(agent: string, afterMs: number, most: number): readonly LateApplication[];
  /** An agent whose oldest change has waited for longer is reported, and so is each Application whose change has. */
  readonly outOfStepAfterMs: number;
}

/** Reports agents and Applications that stay out of step, once each, until aborted. */
export async function watchFleet(
  events: FleetReporter,
  fleet: WatchedFleet,
  signal: AbortSignal,
  intervalMs = everyMs,
): Promise<void> {
  let late = new Set<string>();
  for (await sleep(intervalMs, signal); !signal.aborted; await sleep(intervalMs, signal)) {
    const lateNow = new Set<string>();
    const isNew = (subject: string) => {
      const isKnown = late.has(subject) || lateNow.has(subject);
      lateNow.add(subject);
      return !isKnown;
    };
    for (const { agent, oldestMs } of fleet.agents()) {
      if (oldestMs <= fleet.outOfStepAfterMs) {
        continue;
      }
      const subject = eventSubject(agent);
      if (isNew(subject)) {
        events.report('agent-out-of-step', subject, { agent, seconds: secondsOf(oldestMs) });
      }
      const room = Math.min(mostApplications, mostRemembered - lateNow.size);
      for (const { namespace, name, ms } of fleet.lateApplications(agent, fleet.outOfStepAfterMs, room)) {
        const application = `${namespace}/${name}`;
        const of = `applications/${application}`;
        if (isNew(of)) {
          events.report('application-out-of-step', of, { agent, application, seconds: secondsOf(ms) });
        }
      }
    }
    late = lateNow;
  }
}

function secondsOf(ms: number): number {
  return Math.round(ms / 1_000);
}
