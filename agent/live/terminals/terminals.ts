import type { Logger } from '../../../lib/base/index.ts';
import type { KubeClient } from '../../../lib/kube/index.ts';
import { type TerminalRequest, terminalRequest } from '../../../lib/live/index.ts';
import { dataOf, type WireEvent } from '../../../lib/wire/index.ts';
import type { ManagedObjects } from '../managed/managed-objects.ts';
import { podPath, requireManagedPod } from '../managed/managed-pod.ts';
import { RequestRefusedError, statusOf } from '../refusal.ts';
import type { RequestContext } from '../requests.ts';
import { TerminalSession } from './terminal-session.ts';

/** What {@link Terminals} works with. */
export interface TerminalsOptions {
  /** For live requests alone. */
  readonly client: KubeClient;
  readonly managed: Pick<ManagedObjects, 'verdictOn'>;
  readonly access: 'managed' | 'all';
  /** Whether terminals are served. argocd-agent documents its switch for terminals too, but ignores it. */
  readonly isEnabled: boolean;
  /** A terminal without input and output for this time is closed; 0 for never. */
  readonly idleMs: number;
  readonly metrics: TerminalMetrics;
  readonly logger: Logger;
}

/** Counts terminals. */
export interface TerminalMetrics {
  opened(): void;
  closed(): void;
}

/** Terminals that may be open at the same time. */
const mostAtOnce = 100;
/** API servers of before 1.30 know no v5. */
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];

/** Opens terminals in containers of pods that belong to Applications, and executes commands there. */
export class Terminals {
  readonly #options: TerminalsOptions;
  #open = 0;

  constructor(options: TerminalsOptions) {
    this.#options = options;
  }

  /** Serves one request, over a live stream, to its end. */
  async handle(event: WireEvent, { live, signal }: RequestContext): Promise<void> {
    const { client, isEnabled, idleMs, metrics, logger } = this.#options;
    const request = dataOf(event, terminalRequest);
    const { uuid, namespace, podName, containerName, tty } = request;
    const session = await TerminalSession.open(live, { uuid, isTty: tty, idleMs, signal });
    // Neither the input nor the command is logged.
    const about = { namespace, pod: podName, container: containerName, session: uuid };
    const began = performance.now();
    this.#open++;
    metrics.opened();
    try {
      if (!isEnabled) {
        throw new RequestRefusedError(501, 'live access is switched off on this agent (--enable-resource-proxy)');
      }
      if (this.#open > mostAtOnce) {
        throw new RequestRefusedError(429, `the agent has ${mostAtOnce} terminals open already`);
      }
      await requireManagedPod(request, this.#options, session.gone);
      const path = `${podPath(request, 'exec')}?${queryOf(request)}`;
      const exec = await client.webSocket(path, { protocols, signal: session.gone });
      logger.info(about, 'a terminal is open');
      await session.run(exec);
    } catch (error) {
      if (!session.gone.aborted) {
        const [code, text] = statusOf(error);
        if (error instanceof RequestRefusedError || code < 500) {
          logger.info({ ...about, error }, 'a terminal was refused');
        } else {
          logger.warn({ ...about, error }, 'a terminal could not be opened');
        }
        session.end(text);
      }
    } finally {
      await session.closed();
      this.#open--;
      metrics.closed();
      const seconds = Math.round((performance.now() - began) / 1_000);
      logger.info({ ...about, seconds }, 'a terminal is closed');
    }
  }
}

function queryOf({ containerName, command, stdin, stdout, stderr, tty }: TerminalRequest): string {
  const query = new URLSearchParams();
  if (containerName !== '') {
    query.set('container', containerName);
  }
  for (const word of command) {
    query.append('command', word);
  }
  // A terminal has one output.
  for (const [key, value] of Object.entries({ stdin, stdout, stderr: stderr && !tty, tty })) {
    if (value) {
      query.set(key, 'true');
    }
  }
  return query.toString();
}
