import { isForbidden, KubeClient } from '../../lib/kube/index.ts';
import { command, type FlagValues, UsageError } from '../../lib/ops/index.ts';
import { connectionOf } from '../daemon/index.ts';
import { adopt, forbiddenError, release, type TakeoverScope } from '../takeover/index.ts';
import { adoptFlags, releaseFlags } from './flags.ts';

interface Context {
  readonly signal: AbortSignal;
  readonly stdout: (text: string) => void;
}

/** The command that takes a hub over from argocd-pull-integration. */
export const adoptCommand = command({
  name: 'adopt',
  summary: "Take a hub over from argocd-pull-integration's chart: its clusters keep everything",
  flags: adoptFlags,
  run: (flags, context) => withClient(flags, context, adopt),
});

/** The command that gives a hub back to argocd-pull-integration. */
export const releaseCommand = command({
  name: 'release',
  summary: 'Give a hub back to argocd-pull-integration: its clusters keep everything',
  flags: releaseFlags,
  run: (flags, context) => {
    if (flags.to !== 'original') {
      throw new UsageError('--to must say who goes on with the hub: original (argocd-pull-integration)');
    }
    return withClient(flags, context, release);
  },
});

async function withClient(
  flags: FlagValues<typeof adoptFlags>,
  { signal, stdout }: Context,
  run: (scope: TakeoverScope) => Promise<void>,
): Promise<void> {
  const client = KubeClient.load(connectionOf(flags));
  try {
    await run({
      client,
      namespace: flags.namespace,
      release: { name: flags.release, namespace: flags['release-namespace'] },
      dryRun: flags['dry-run'],
      timeoutMs: flags.timeout,
      signal,
      stdout,
    });
  } catch (error) {
    throw isForbidden(error) ? forbiddenError(error as Error) : error;
  } finally {
    await client.close();
  }
}
