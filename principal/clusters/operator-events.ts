import type { Application, MirrorChange, MirrorFailure } from '../../lib/argocd/index.ts';
import type { AuthError } from '../../lib/auth/index.ts';
import { BoundedMap, type RateLimit, TokenBucket } from '../../lib/base/index.ts';
import type { EventRecorder } from '../../lib/kube/index.ts';
import type { ObjectRef } from '../../lib/sync/index.ts';
import type { UnsteadyConnection } from '../sessions/unsteady-connections.ts';
import type { MappedAgents } from './mapped-agents.ts';

/**
 * The reasons of the principal's Events, about cluster Secrets and mirrors. docs/reference/events.md says what they mean
 * (`site/reference/events.ts`).
 */
export type PrincipalEventReason =
  | 'AgentModeRefused'
  | 'AgentConnectionUnsteady'
  | 'CannotMirror'
  | 'ApplicationKept'
  | 'AgentReportRefused'
  | 'AgentRefuses'
  | 'AgentQuotaExceeded'
  | 'MirrorPutBack';

/** Events about one agent for one reason: an agent can cause as many different ones as it likes. */
const eventRate: RateLimit = { burst: 20, perSecond: 1 / 60 };
/** Events about one mirror. Whoever writes it again and again, as another controller may, reads it in the first one. */
const mirrorRate: RateLimit = { burst: 1, perSecond: 1 / 600 };
/** More than a principal has agents and reasons. */
const mostBuckets = 65_536;

/** Records Events about an agent's cluster Secrets when an operator has to act, and about mirrors that somebody changed for nothing. */
export class OperatorEvents {
  readonly #agents: Pick<MappedAgents, 'clustersOf'>;
  readonly #events: Pick<EventRecorder<PrincipalEventReason>, 'warning'>;
  readonly #now: (() => number) | undefined;
  readonly #buckets = new BoundedMap<string, TokenBucket>(mostBuckets);

  constructor(options: {
    agents: Pick<MappedAgents, 'clustersOf'>;
    events: Pick<EventRecorder<PrincipalEventReason>, 'warning'>;
    /** Milliseconds of a clock that never goes back. */
    now?: () => number;
  }) {
    this.#now = options.now;
    this.#agents = options.agents;
    this.#events = options.events;
  }

  /** An agent came in a mode that it may not have. */
  refusedMode({ agent = '', message, hint = '' }: AuthError): void {
    this.#warn(agent, 'AgentModeRefused', `Agent ${agent} is refused: ${message}. ${hint}`);
  }

  /** Connections of an agent end soon, again and again. */
  unsteady({ agent, count, shortestMs, longestMs }: UnsteadyConnection): void {
    const seconds = (ms: number) => Math.round(ms / 1_000);
    const [shortest, longest] = [seconds(shortestMs), seconds(longestMs)];
    const lives = shortest === longest ? `${shortest} s` : `${shortest} to ${longest} s`;
    const causes = 'something on the way closes connections that are idle or old, or the agent does not stay up';
    this.#warn(agent, 'AgentConnectionUnsteady', `Agent ${agent} lost ${count} connections after ${lives}: ${causes}`);
  }

  /** An Application or AppProject of an autonomous agent cannot be shown on the hub. */
  cannotMirror({ agent, kind = 'Application', name, message }: MirrorFailure): void {
    this.#warn(agent, 'CannotMirror', `${kind} ${name} of agent ${agent} cannot be shown here: ${message}`);
  }

  /** An agent has an Application that this hub does not have and that was made for another principal. */
  keptApplication(agent: string, { namespace, name }: ObjectRef): void {
    const place = `${namespace}/${name}`;
    this.#warn(
      agent,
      'ApplicationKept',
      `Agent ${agent} keeps Application ${place}, which another principal made, with its AppProject and credentials. Restore them here, or delete the copy of ${place} on the cluster`,
    );
  }

  /** The API server refuses what an agent reports, which may be of every write of the Application that is to show it. */
  refusedReport(agent: string, { namespace, name }: ObjectRef, reason: string): void {
    const place = `${namespace}/${name}`;
    this.#warn(
      agent,
      'AgentReportRefused',
      `What agent ${agent} reports about Application ${place} cannot be written here, and is tried again: ${reason}`,
    );
  }

  /** An agent cannot have on its cluster what it was sent, or cannot read it. */
  refusedByAgent(agent: string, reason: string): void {
    this.#warn(agent, 'AgentRefuses', `Agent ${agent} refuses what it is sent: ${reason}`);
  }

  /** An agent would have more on the hub than it may. */
  overQuota(agent: string, message: string): void {
    this.#warn(agent, 'AgentQuotaExceeded', `A write of agent ${agent} is refused: ${message}`);
  }

  /** Somebody of the hub has changed or deleted the mirror of an autonomous agent's Application, for nothing. */
  putBack(mirror: Application, was: MirrorChange): void {
    const { namespace: agent = '', name } = mirror.metadata;
    const ofMirror = this.#bucket(`${was} ${agent}/${name}`, mirrorRate);
    // What the agent's rate refuses does not count for the mirror.
    if (ofMirror.waitMs > 0 || !this.#bucket(`MirrorPutBack ${agent}`, eventRate).tryTake()) {
      return;
    }
    ofMirror.tryTake();
    const undone = was === 'deleted' ? 'It was deleted here, and is back' : 'It was changed here, and is as before';
    this.#events.warning(
      { ...mirror, apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' },
      'MirrorPutBack',
      `${undone}: this Application belongs to the cluster of agent ${agent}. Change or delete it there, where it comes from`,
    );
  }

  #bucket(kind: string, rate: RateLimit): TokenBucket {
    const bucket = this.#buckets.get(kind) ?? new TokenBucket(rate, this.#now);
    this.#buckets.set(kind, bucket);
    return bucket;
  }

  #warn(agent: string, reason: PrincipalEventReason, message: string): void {
    if (!this.#bucket(`${reason} ${agent}`, eventRate).tryTake()) {
      return;
    }
    for (const { secret } of this.#agents.clustersOf(agent)) {
      this.#events.warning({ ...secret, apiVersion: 'v1', kind: 'Secret' }, reason, message);
    }
  }
}
