import type { MirrorFailure } from '../../lib/argocd/index.ts';
import type { AuthError } from '../../lib/auth/index.ts';
import type { EventRecorder } from '../../lib/kube/index.ts';
import type { MappedAgents } from './mapped-agents.ts';

/** Records Events about an agent's cluster Secrets when an operator has to act. */
export class OperatorEvents {
  readonly #agents: Pick<MappedAgents, 'clustersOf'>;
  readonly #events: Pick<EventRecorder, 'warning'>;

  constructor(options: { agents: Pick<MappedAgents, 'clustersOf'>; events: Pick<EventRecorder, 'warning'> }) {
    this.#agents = options.agents;
    this.#events = options.events;
  }

  /** An agent came in a mode that it may not have. */
  refusedMode({ agent = '', message, hint = '' }: AuthError): void {
    this.#warn(agent, 'AgentModeRefused', `Agent ${agent} is refused: ${message}. ${hint}`);
  }

  /** An Application or AppProject of an autonomous agent cannot be shown on the hub. */
  cannotMirror({ agent, kind = 'Application', name, message }: MirrorFailure): void {
    this.#warn(agent, 'CannotMirror', `${kind} ${name} of agent ${agent} cannot be shown here: ${message}`);
  }

  #warn(agent: string, reason: string, message: string): void {
    for (const { secret } of this.#agents.clustersOf(agent)) {
      this.#events.warning({ ...secret, apiVersion: 'v1', kind: 'Secret' }, reason, message);
    }
  }
}
