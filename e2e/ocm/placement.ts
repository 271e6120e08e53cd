import { isDeepStrictEqual } from 'node:util';
import {
  Informer,
  isNotFound,
  type KubeClient,
  keyOf,
  parseKey,
  type ResourceType,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { decisionGroups, type OcmDecisionGroup } from './decision-groups.ts';
import { schedule } from './schedule.ts';
import {
  managedClusterSetBindings,
  managedClusterSets,
  type OcmPlacement,
  type OcmPlacementDecision,
  ocmManagedClusters,
  ocmPlacementDecisions,
  ocmPlacements,
  withCondition,
} from './types.ts';

const placementLabel = 'cluster.open-cluster-management.io/placement';
const groupIndexLabel = 'cluster.open-cluster-management.io/decision-group-index';
const groupNameLabel = 'cluster.open-cluster-management.io/decision-group-name';
const disabled = 'cluster.open-cluster-management.io/experimental-scheduling-disable';
const decisionsPerObject = 100;

/**
 * Stands in for OCM's placement controller until the signal aborts: keeps the PlacementDecisions of every Placement of
 * the hub. At least one decision object always exists, and status is written after creation, as the real one does.
 */
export async function runPlacementController(hub: KubeClient, signal: AbortSignal): Promise<void> {
  const logger = createLogger({ name: 'ocm-placement', level: 'warn' });
  const informer = <T extends OcmPlacement>(type: ResourceType<T>) => new Informer<T>({ client: hub, type, logger });
  const watched = {
    placements: informer(ocmPlacements),
    decisions: informer(ocmPlacementDecisions as ResourceType<OcmPlacementDecision & OcmPlacement>),
    clusters: new Informer({ client: hub, type: ocmManagedClusters, logger }),
    sets: new Informer({ client: hub, type: managedClusterSets, logger }),
    bindings: new Informer({ client: hub, type: managedClusterSetBindings, logger }),
  };

  const decisionsOf = (placement: OcmPlacement) =>
    (watched.decisions.list(placement.metadata.namespace) as OcmPlacementDecision[]).filter(
      (d) => d.metadata.labels?.[placementLabel] === placement.metadata.name,
    );

  async function reconcile(key: string): Promise<void> {
    const placement = watched.placements.get(parseKey(key));
    if (!placement || placement.metadata.deletionTimestamp || placement.metadata.annotations?.[disabled] === 'true') {
      return;
    }
    const existing = decisionsOf(placement);
    const current = new Set(existing.flatMap((d) => d.status?.decisions ?? []).map((d) => d.clusterName));
    const clusters = watched.clusters.list();
    const result = schedule(placement, {
      clusters,
      sets: watched.sets.list(),
      bindings: watched.bindings.list(),
      current,
    });
    const groups = decisionGroups(placement, result.clusters, clusters);
    const written: { group: OcmDecisionGroup; decisions: string[] }[] = [];
    const wanted = new Set<string>();
    for (const [index, group] of groups.entries()) {
      const decisions: string[] = [];
      for (let from = 0; from === 0 || from < group.clusters.length; from += decisionsPerObject) {
        const name = `${placement.metadata.name}-decision-${wanted.size + 1}`;
        const labels = { [groupIndexLabel]: String(index), [groupNameLabel]: group.name };
        await writeDecision(placement, name, labels, group.clusters.slice(from, from + decisionsPerObject), existing);
        decisions.push(name);
        wanted.add(name);
      }
      written.push({ group, decisions });
    }
    for (const stale of existing.filter((d) => !wanted.has(d.metadata.name))) {
      await hub.delete(ocmPlacementDecisions, stale.metadata);
    }
    await writeStatus(placement, result, written);
  }

  async function writeDecision(
    placement: OcmPlacement,
    name: string,
    group: Record<string, string>,
    clusters: string[],
    existing: OcmPlacementDecision[],
  ): Promise<void> {
    const { namespace } = placement.metadata;
    const labels = { [placementLabel]: placement.metadata.name, ...group };
    const before = existing.find((d) => d.metadata.name === name);
    const key = { name, ...(namespace !== undefined && { namespace }) };
    if (!before) {
      await hub.create(ocmPlacementDecisions, {
        metadata: {
          ...key,
          labels,
          ownerReferences: [
            {
              apiVersion: 'cluster.open-cluster-management.io/v1beta1',
              kind: 'Placement',
              name: placement.metadata.name,
              uid: placement.metadata.uid ?? '',
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
      });
    } else if (Object.entries(labels).some(([label, value]) => before.metadata.labels?.[label] !== value)) {
      await hub.mergePatch(ocmPlacementDecisions, key, { metadata: { labels } });
    }
    const decisions = clusters.map((clusterName) => ({ clusterName, reason: '' }));
    // As OCM's own controller, which takes a missing list for an empty one.
    if (!isDeepStrictEqual(before?.status?.decisions ?? [], decisions)) {
      await hub.mergePatch(ocmPlacementDecisions, key, { status: { decisions } }, { subresource: 'status' });
    }
  }

  async function writeStatus(
    placement: OcmPlacement,
    { satisfied, reason, message, clusters }: ReturnType<typeof schedule>,
    groups: { group: OcmDecisionGroup; decisions: string[] }[],
  ): Promise<void> {
    let conditions = withCondition(placement.status?.conditions, {
      type: 'PlacementMisconfigured',
      status: 'False',
      reason: 'Succeedconfigured',
      message: 'Placement configurations check pass',
    });
    const status = satisfied ? 'True' : 'False';
    conditions = withCondition(conditions, { type: 'PlacementSatisfied', status, reason, message });
    const desired = {
      conditions,
      numberOfSelectedClusters: clusters.length,
      decisionGroups: groups.map(({ group, decisions }, decisionGroupIndex) => {
        return { clusterCount: group.clusters.length, decisionGroupIndex, decisionGroupName: group.name, decisions };
      }),
    };
    if (isDeepStrictEqual(placement.status, desired)) {
      return;
    }
    await hub.mergePatch(ocmPlacements, placement.metadata, { status: desired }, { subresource: 'status' });
  }

  const queue = new WorkQueue({
    name: 'ocm-placement',
    logger,
    handler: (key) =>
      reconcile(key).catch((error: unknown) => {
        // The Placement went away while it was worked on; its decisions go by garbage collection.
        if (!isNotFound(error)) {
          throw error;
        }
      }),
  });
  const everyPlacement = () => {
    for (const placement of watched.placements.list()) {
      queue.add(keyOf(placement));
    }
  };
  const one = (placement: OcmPlacement) => queue.add(keyOf(placement));
  watched.placements.subscribe({ added: one, updated: (_, now) => one(now) });
  const ownerOf = (decision: OcmPlacementDecision) => {
    const name = decision.metadata.labels?.[placementLabel];
    if (name) {
      queue.add(`${decision.metadata.namespace}/${name}`);
    }
  };
  watched.decisions.subscribe({ updated: (_, now) => ownerOf(now), deleted: ownerOf });
  for (const source of [watched.clusters, watched.sets, watched.bindings]) {
    source.subscribe({ added: everyPlacement, updated: everyPlacement, deleted: everyPlacement });
  }

  const informers = Object.values(watched);
  const running = informers.map((i) => i.run(signal));
  await Promise.all(informers.map((i) => i.synced(signal)));
  everyPlacement();
  await Promise.all([...running, queue.run(signal)]);
}
