import type { Condition } from '../../lib/kube/index.ts';
import { addOnName } from '../hub/index.ts';
import { type ClusterConcern, type ClusterReport, healthOf } from '../ownership/index.ts';
import { isTakenOver } from '../trust/index.ts';
import { ensureAddOn, writeAddOnStatus } from './cluster-addon.ts';
import { clusterCertificates } from './cluster-certificates.ts';
import { configOf } from './cluster-config.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { ensureDelivered, ensureImported } from './cluster-secrets.ts';
import { ensureWorks } from './cluster-works.ts';
import { deliversOrderedPods } from './delivered-values.ts';
import { cleanFormerNamespaces, recordFormerNamespaces, stopCleaningUsed } from './former-namespaces.ts';
import { renderCluster } from './render-cluster.ts';

/** The result of the reconcile of an enrolled cluster. */
export interface EnsuredCluster {
  /** The report for the GitOpsCluster's status. */
  readonly report: ClusterReport;
  /** The add-on's conditions before and after. */
  readonly before: readonly Condition[];
  readonly conditions: readonly Condition[];
  /** When the cluster must be reconciled again without any change, in milliseconds since the epoch. */
  readonly renewAt: number;
  /** Errors that are retried. */
  readonly errors: readonly unknown[];
}

/** Reconciles one enrolled cluster. A failed concern does not keep the others from being tried. */
export async function ensureCluster(deps: ClusterDeps, enrolment: Enrolment): Promise<EnsuredCluster> {
  const { cluster, foundation, signal } = enrolment;
  const { caches, rollouts, renderings, templates, delivery: settings } = deps;
  const problems: Partial<Record<ClusterConcern, string>> = {};
  const errors: unknown[] = [];
  const attempt = async <T>(concern: ClusterConcern, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      problems[concern] ??= (error as Error).message;
      // A lasting error is not retried: it is solved by a change of an object, which triggers another reconcile.
      if (!isLasting(error)) {
        errors.push(error);
      }
      return undefined;
    }
  };
  // Until its Secret exists, only the add-on shows that argocd-pull-integration enrolled a cluster. So it is changed later.
  const takesOver = isTakenOver(caches.addOns.get({ namespace: cluster, name: addOnName }));
  const delivering = attempt('works', () => ensureDelivered(deps, enrolment));
  const [imported, secrets] = await Promise.all([
    attempt('import', () => ensureImported(deps, enrolment)),
    delivering,
    attempt('addOn', async () => {
      await (takesOver ? delivering : undefined);
      await ensureAddOn(deps, enrolment);
    }),
  ]);
  // Called even when other concerns failed: a cluster that cannot be delivered to must not keep its place in a rollout.
  const delivery = await attempt('works', () => rollouts.deliveryFor(foundation, cluster, signal));
  const rendered =
    delivery &&
    secrets &&
    (await attempt('works', async () => {
      const config = configOf({ caches, cluster });
      const { key, addOn, endpoint, authorities } = foundation;
      const orderedPods = deliversOrderedPods(caches.works.list(cluster));
      // The version stands for the CRDs: it contains their hash and is much shorter.
      const input = [
        key,
        addOn,
        endpoint,
        authorities,
        settings.pullPolicy,
        config,
        delivery.version,
        secrets.delivered,
        orderedPods,
      ];
      return renderings.of(cluster, input, () =>
        renderCluster(
          { cluster, templates, foundation, delivery: settings, config, release: delivery, orderedPods },
          secrets.delivered,
        ),
      );
    }));
  const written =
    rendered &&
    (await attempt('works', async () => {
      await stopCleaningUsed(deps, enrolment, rendered);
      await recordFormerNamespaces(deps, enrolment, rendered);
      const isChanged = await ensureWorks(deps, enrolment, rendered, delivery);
      if (!isChanged) {
        await cleanFormerNamespaces(deps, enrolment, rendered, configOf({ caches, cluster }));
      }
      return isChanged;
    }));
  const endpoint = delivery?.version.endpoint ?? foundation.endpoint;
  const { phase, until } = rollouts.report(foundation, cluster, written !== false);
  const status = await attempt('addOn', () =>
    writeAddOnStatus(deps, enrolment, {
      problem: problems.works,
      phase,
      endpoint,
      plan: secrets?.plan,
      skippedLabels: imported?.skippedLabels,
    }),
  );
  const { before, conditions } = status ?? { before: [], conditions: [] };
  const isComplete = problems.import === undefined && problems.works === undefined;
  const certificates =
    isComplete && rendered ? clusterCertificates(deps, enrolment, rendered, secrets.delivered) : undefined;
  const renewals = [imported?.renewAt, secrets?.renewAt, until];
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
    renewAt: Math.min(...renewals.map((time) => time ?? Number.POSITIVE_INFINITY)),
    errors,
  };
}

/** Codes of errors that last until a watched object changes. */
const lasting = new Set(['NOT_DELIVERABLE', 'OVERSIZED_MANIFEST']);

function isLasting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && lasting.has(String(error.code));
}
