import type { Condition } from '../../lib/kube/index.ts';
import type { ClusterConcern } from '../fleet/steps.ts';
import type { ManagedCluster } from '../hub/resources.ts';
import type { ClusterReport } from '../spec/foundation.ts';
import { ensureAddOn, writeAddOnStatus } from './cluster-addon.ts';
import { clusterCertificates } from './cluster-certificates.ts';
import { configOf } from './cluster-config.ts';
import type { ClusterContext } from './cluster-context.ts';
import { healthOf } from './cluster-health.ts';
import { ensureDelivered, ensureImported } from './cluster-secrets.ts';
import { ensureWorks, renderCluster } from './cluster-works.ts';
import { cleanFormerNamespaces, noteFormerNamespaces } from './former-namespaces.ts';

/**
 * Brings one cluster into the state that its GitOpsCluster asks for. Each concern is tried whatever became of the
 * others.
 * @returns what the GitOpsCluster's status needs, the add-on's conditions, and the errors that call for another try
 */
export async function ensureCluster(context: ClusterContext): Promise<{
  report: ClusterReport;
  before: readonly Condition[];
  conditions: readonly Condition[];
  errors: unknown[];
}> {
  const problems: Partial<Record<ClusterConcern, string>> = {};
  const errors: unknown[] = [];
  const attempt = async <T>(concern: ClusterConcern, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      context.signal.throwIfAborted();
      problems[concern] ??= (error as Error).message;
      // What only a change of some object can put right is not tried again before: that change leads here by itself.
      if (!isLasting(error)) {
        errors.push(error);
      }
      return undefined;
    }
  };
  const [, delivered] = await Promise.all([
    attempt('import', () => ensureImported(context)),
    attempt('works', () => ensureDelivered(context)),
    attempt('addOn', () => ensureAddOn(context)),
  ]);
  const { cluster, foundation, rollouts, renderings, delivery } = context;
  // Asked for whatever became of the rest: a cluster that cannot be given anything must not keep its place in the queue.
  const turn = await attempt('works', () => rollouts.turnOf(foundation, cluster, context.signal));
  const rendered =
    turn &&
    delivered &&
    (await attempt('works', async () => {
      const config = configOf(context);
      const { key, addOn, endpoint, authorities } = foundation;
      // The version holds a hash of the CRDs, which are much longer.
      const input = [key, addOn, endpoint, authorities, delivery.pullPolicy, config, turn.version, delivered];
      return renderings.of(cluster, input, () => renderCluster({ ...context, config, release: turn }, delivered));
    }));
  const written =
    rendered &&
    (await attempt('works', async () => {
      await noteFormerNamespaces(context, rendered);
      const isChanged = await ensureWorks(context, rendered, turn);
      if (!isChanged) {
        await cleanFormerNamespaces(context, rendered, configOf(context));
      }
      return isChanged;
    }));
  const { phase, until } = rollouts.report(foundation, cluster, written !== false);
  if (until !== undefined) {
    context.renewAt = Math.min(context.renewAt, until);
  }
  const said = await attempt('addOn', () => writeAddOnStatus(context, problems.works, phase));
  const { before, conditions } = said ?? { before: [], conditions: [] };
  const isComplete = problems.import === undefined && problems.works === undefined;
  const certificates = isComplete && rendered ? clusterCertificates(context, rendered, delivered) : undefined;
  return {
    report: {
      cluster,
      owner: foundation.key,
      problems,
      ...(certificates && { certificates }),
      health: healthOf(conditions),
    },
    before,
    conditions,
    errors,
  };
}

/** Codes of errors that stay until someone changes an object that is watched. */
const lasting = new Set(['NOT_DELIVERABLE', 'OVERSIZED_MANIFEST']);

function isLasting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && lasting.has(String(error.code));
}

/**
 * Why a managed cluster must not get an Argo CD from here: it is the hub.
 * @param hubId the UID of the hub's namespace kube-system
 */
export function reasonToSkip(cluster: ManagedCluster, hubId: string | undefined): string | undefined {
  const { name, labels } = cluster.metadata;
  if (name === 'local-cluster' || labels?.['local-cluster'] === 'true') {
    return 'it is the hub itself';
  }
  const id = cluster.status?.clusterClaims?.find((claim) => claim.name === 'id.k8s.io')?.value;
  if (id !== undefined && id === hubId) {
    return 'it is the hub itself (its claim id.k8s.io is that of the hub)';
  }
  return undefined;
}
