import { setTimeout as delay } from 'node:timers/promises';
import { findCondition, hasFinalizer, KubeClient, keyOf } from '../../lib/kube/index.ts';
import { command, FatalError, printableLines } from '../../lib/ops/index.ts';
import { connectionOf } from '../daemon/index.ts';
import {
  fieldManager,
  finalizer,
  type GitOpsCluster,
  gitOpsClusters,
  keys,
  managedClusterAddOns,
} from '../hub/index.ts';
import { uninstallFlags } from './flags.ts';

interface Target {
  readonly client: KubeClient;
  readonly key: { readonly namespace: string; readonly name: string };
  readonly signal: AbortSignal;
}

/**
 * Prepares an uninstallation while the controller runs: deletes a GitOpsCluster and waits until its clusters are cleaned up,
 * or has the finalizers removed that nothing would remove without a controller.
 */
export const uninstallCommand = command({
  name: 'uninstall',
  summary: 'Delete a GitOpsCluster and wait until its clusters are detached; use it before the controller is removed',
  flags: uninstallFlags,
  run: async (flags, { signal, stdout }) => {
    const client = KubeClient.load(connectionOf(flags));
    const target: Target = { client, key: { namespace: flags.namespace, name: flags.name }, signal };
    const keeps = flags['keep-clusters'];
    const who = `GitOpsCluster ${keyOf(target.key)}`;
    const deadline = Date.now() + flags.timeout;
    try {
      if (flags.hook && isOfKubectl(await client.get(gitOpsClusters, target.key, signal))) {
        stdout(
          `${who} was applied by kubectl, which knows no hooks: it is left alone. Render the chart with --no-hooks, and delete the GitOpsCluster yourself before the controller\n`,
        );
        return;
      }
      await refuseOthers(target);
      if (keeps) {
        await retain(target);
      } else {
        await client.delete(gitOpsClusters, target.key, { signal });
      }
      let said = '';
      for (;;) {
        const message = keeps ? await held(target) : await remaining(target);
        if (message === undefined) {
          break;
        }
        if (message !== said) {
          stdout(printableLines(`${message}\n`));
        }
        said = message;
        if (Date.now() > deadline) {
          throw new FatalError(
            `${who} is still there: ${message}. To go on without clusters that do not answer, annotate it with ${keys.forceDetach}=true`,
          );
        }
        await delay(500, undefined, { signal });
      }
      stdout(keeps ? `${who} can go; its clusters keep what they have\n` : `${who} is gone\n`);
    } finally {
      await client.close();
    }
  },
});

/** Whether kubectl has applied an object from a rendering: Helm marks what it installs, and Argo CD applies by itself. */
function isOfKubectl(object: GitOpsCluster | undefined): boolean {
  const { annotations = {}, managedFields = [] } = object?.metadata ?? {};
  const managers = managedFields.map((one) => (one as { manager?: string }).manager ?? '');
  return (
    !('meta.helm.sh/release-name' in annotations) &&
    managers.some((manager) => manager === 'kubectl' || manager === 'kubectl-client-side-apply')
  );
}

/** Fails when there are other GitOpsClusters: their deletion needs the controller. */
async function refuseOthers({ client, key, signal }: Target): Promise<void> {
  const others = (await client.list(gitOpsClusters, { signal }))
    .filter((one) => keyOf(one) !== keyOf(key) && hasFinalizer(one, finalizer))
    .map(keyOf);
  if (others.length === 0) {
    return;
  }
  throw new FatalError(
    `GitOpsCluster ${others.join(', ')} would be left without a controller: delete it first, or annotate it with ${keys.retain}=true if its clusters shall keep what they have`,
  );
}

/** What the deletion of a GitOpsCluster waits for, as a message; undefined when it is gone. */
async function remaining({ client, key, signal }: Target): Promise<string | undefined> {
  const left = await client.get(gitOpsClusters, key, signal);
  return left && (saidOf(left) ?? 'waiting for the controller');
}

const saidOf = ({ status }: GitOpsCluster) => findCondition(status?.conditions, 'RemovedClustersCleanedUp')?.message;

async function retain({ client, key, signal }: Target): Promise<void> {
  if ((await client.get(gitOpsClusters, key, signal)) === undefined) {
    return;
  }
  const patch = { metadata: { annotations: { [keys.retain]: 'true' } } };
  await client.mergePatch(gitOpsClusters, key, patch, { fieldManager, signal });
}

/** The finalizers that the controller still has on a GitOpsCluster whose clusters keep their objects, as a message. */
async function held({ client, key, signal }: Target): Promise<string | undefined> {
  const own = await client.get(gitOpsClusters, key, signal);
  if (own && hasFinalizer(own, finalizer)) {
    return 'waiting for the controller to let it go';
  }
  const addOns = (await client.list(managedClusterAddOns, { signal })).filter(
    (one) => one.metadata.annotations?.[keys.owner] === keyOf(key) && hasFinalizer(one, finalizer),
  );
  return addOns[0] && `waiting for the controller to let ${addOns.length} add-ons go, the first is ${keyOf(addOns[0])}`;
}
