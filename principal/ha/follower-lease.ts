import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from '../../lib/base/index.ts';
import type { RunningProgram } from '../../lib/bridge/index.ts';
import { type KubeClient, LeadershipLostError, runWithLease } from '../../lib/kube/index.ts';
import type { PrincipalFlags } from '../flags.ts';
import { replicaTimes } from '../settings.ts';

const name = 'argocd-agent.follower';

interface FollowerContext {
  readonly flags: PrincipalFlags;
  readonly program: Pick<RunningProgram, 'client' | 'clientWith'>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * Of the principals of a standby hub one follows the other hub: the one that holds Lease `argocd-agent.follower`.
 * @param follow gets a client that writes nothing once the Lease may be another one's
 */
export async function asFollower(
  context: FollowerContext,
  follow: (writer: KubeClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { program, signal } = context;
  while (!signal.aborted) {
    try {
      await underLease(context, async (following, fence) => {
        const writer = program.clientWith(fence);
        try {
          await follow(writer, following);
        } finally {
          await writer.close();
        }
      });
    } catch (error) {
      if (!(error instanceof LeadershipLostError)) {
        throw error;
      }
    }
  }
}

/** Resolves when no principal of this hub follows the other one any more, true; false when aborted before. */
export async function nobodyFollows(context: FollowerContext): Promise<boolean> {
  let isFree = false;
  await underLease(context, async () => {
    isFree = true;
  });
  return isFree;
}

function underLease(
  { flags, program, logger, signal }: FollowerContext,
  lead: (signal: AbortSignal, fence: () => void) => Promise<void>,
): Promise<void> {
  const { renewMs, deadlineMs, durationMs } = replicaTimes(flags);
  return runWithLease({
    client: program.client,
    namespace: flags.namespace,
    name,
    identity: `${process.env.POD_NAME ?? hostname()}_${randomBytes(5).toString('hex')}`,
    leaseDurationMs: durationMs,
    renewDeadlineMs: deadlineMs,
    retryPeriodMs: renewMs,
    signal,
    lead,
    logger,
  });
}
