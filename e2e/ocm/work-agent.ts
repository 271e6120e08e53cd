import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  Informer,
  isNotFound,
  type KubeClient,
  type KubeObject,
  keyOf,
  type OwnerReference,
  parseKey,
  type Requeue,
  type ResourceType,
  resourceType,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { type ApplyCache, applyManifest } from './apply-manifest.ts';
import { readFeedback } from './feedback.ts';
import { inApplyOrder } from './manifest-order.ts';
import {
  type AppliedManifestWork,
  type AppliedResource,
  appliedManifestWorks,
  type ManifestStatus,
  type OcmCondition,
  type OcmManifestConfig,
  type OcmManifestWork,
  ocmManifestWorks,
  type ResourceIdentifier,
  withCondition,
} from './types.ts';

const workFinalizer = 'cluster.open-cluster-management.io/manifest-work-cleanup';
const appliedFinalizer = 'cluster.open-cluster-management.io/applied-manifest-work-cleanup';

/** What the work agent of one managed cluster needs. */
export interface WorkAgentOptions {
  /** The hub, with the rights of the cluster's agent. */
  hub: KubeClient;
  /** The managed cluster, with the rights of `klusterlet-work-sa`. */
  spoke: KubeClient;
  cluster: string;
  signal: AbortSignal;
  /** How often feedback that is not watched is read; the real agent's default is 10 s. */
  statusSyncIntervalMs?: number;
}

interface Applied {
  ordinal: number;
  manifest: KubeObject;
  type?: ResourceType;
  live?: KubeObject;
  error?: Error;
}

/**
 * Stands in for OCM's work agent of one managed cluster until the signal aborts. It follows the real one in finalizers, AppliedManifestWork,
 * apply order, update strategies, owner references, feedback, conditions, back-off and delete options. Left out:
 * executors, condition rules and the eviction of works whose hub vanished.
 */
export async function runWorkAgent(options: WorkAgentOptions): Promise<void> {
  const { hub, spoke, cluster, signal, statusSyncIntervalMs = 10_000 } = options;
  const logger = createLogger({ name: `ocm-work-agent-${cluster}`, level: 'warn' });
  const works = new Informer({ client: hub, type: ocmManifestWorks, namespace: cluster, logger });
  const applied = new Informer({ client: spoke, type: appliedManifestWorks, logger });
  const hubHash = createHash('sha256').update(hub.server).digest('hex');
  const cache: ApplyCache = new Map();
  const watches = new Map<string, AbortController>();

  async function reconcile(key: string): Promise<Requeue | undefined> {
    const work = works.get(parseKey(key));
    if (!work) {
      return;
    }
    if (work.metadata.deletionTimestamp) {
      return await cleanUp(work);
    }
    if (!work.metadata.finalizers?.includes(workFinalizer)) {
      const finalizers = [...(work.metadata.finalizers ?? []), workFinalizer];
      const { resourceVersion } = work.metadata;
      await hub.mergePatch(ocmManifestWorks, work.metadata, { metadata: { finalizers, resourceVersion } });
    }
    const record = await ensureRecord(work);
    const results = await applyAll(work, record);
    await forgetDropped(work, record, results);
    await report(work, results);
    followWatched(work, results);
    const failed = results.filter((r) => r.error);
    if (failed.length > 0) {
      throw new AggregateError(
        failed.map((r) => r.error),
        `work ${key}: ${failed[0]?.error?.message}`,
      );
    }
    return { requeueAfterMs: 240_000 * (1 + Math.random() / 2) };
  }

  const recordName = (work: OcmManifestWork) => `${hubHash}-${work.metadata.name}`;

  async function ensureRecord(work: OcmManifestWork): Promise<AppliedManifestWork> {
    const name = recordName(work);
    return (
      (await spoke.get(appliedManifestWorks, { name })) ??
      (await spoke.create(appliedManifestWorks, {
        metadata: { name, finalizers: [appliedFinalizer] },
        spec: { hubHash, agentID: hubHash, manifestWorkName: work.metadata.name },
      }))
    );
  }

  async function applyAll(work: OcmManifestWork, record: AppliedManifestWork): Promise<Applied[]> {
    const owner: OwnerReference = {
      apiVersion: 'work.open-cluster-management.io/v1',
      kind: 'AppliedManifestWork',
      name: record.metadata.name,
      uid: record.metadata.uid ?? '',
    };
    const results: Applied[] = [];
    for (const { ordinal, manifest } of inApplyOrder(work.spec.workload?.manifests ?? [])) {
      const result: Applied = { ordinal, manifest };
      results.push(result);
      try {
        const type = await spoke.resolve(manifest.apiVersion ?? '', manifest.kind ?? '');
        if (!type) {
          throw new Error(`the server doesn't have a resource type "${manifest.kind}"`);
        }
        result.type = type;
        const strategy = configOf(work, type, manifest)?.updateStrategy;
        const orphaned = isOrphaned(work, type, manifest) || strategy?.type === 'ReadOnly';
        result.live = await applyManifest(spoke, type, manifest, orphaned ? undefined : owner, strategy, cache);
        const owners = result.live.metadata.ownerReferences ?? [];
        if (orphaned && owners.some(({ uid }) => uid === owner.uid)) {
          // The work has become one that leaves its objects behind.
          const ownerReferences = owners.filter(({ uid }) => uid !== owner.uid);
          result.live = await spoke.mergePatch(type, result.live.metadata, { metadata: { ownerReferences } });
        }
      } catch (error) {
        signal.throwIfAborted();
        result.error = error as Error;
      }
    }
    return results;
  }

  /** Deletes what an earlier payload had and this one does not, and records what is there now. */
  async function forgetDropped(work: OcmManifestWork, record: AppliedManifestWork, results: Applied[]): Promise<void> {
    const before = record.status?.appliedResources ?? [];
    const named = results.flatMap((r) => (r.type ? [identityOf(r.type, r.manifest.metadata)] : []));
    for (const entry of before.filter((e) => !named.includes(identityOf(e, e)))) {
      await remove(entry, record);
    }
    const appliedResources = results.flatMap(({ type, manifest, live }) => {
      if (!type || isOrphaned(work, type, manifest)) {
        return [];
      }
      if (live) {
        return [inventoryEntry(type, live)];
      }
      return before.filter((entry) => identityOf(entry, entry) === identityOf(type, manifest.metadata));
    });
    if (!isDeepStrictEqual(appliedResources, before)) {
      await spoke.mergePatch(
        appliedManifestWorks,
        record.metadata,
        { status: { appliedResources } },
        { subresource: 'status' },
      );
    }
  }

  /** Deletes an applied object unless somebody else owns it too; says whether it is gone. */
  async function remove(entry: AppliedResource, record: AppliedManifestWork): Promise<boolean> {
    const type = resourceType({
      ...entry,
      kind: entry.resource,
      plural: entry.resource,
      namespaced: Boolean(entry.namespace),
    });
    const key = { name: entry.name, ...(entry.namespace && { namespace: entry.namespace }) };
    const live = await spoke.get(type, key);
    if (!live || (entry.uid && live.metadata.uid !== entry.uid)) {
      return true;
    }
    const others = (live.metadata.ownerReferences ?? []).filter((o) => o.uid !== record.metadata.uid);
    if (others.some((o) => o.kind === 'AppliedManifestWork')) {
      await spoke.mergePatch(type, key, { metadata: { ownerReferences: others } });
      return true;
    }
    if (!live.metadata.deletionTimestamp) {
      await spoke.delete(type, key, { propagationPolicy: 'Background', ...(entry.uid && { uid: entry.uid }) });
    }
    return (await spoke.get(type, key)) === undefined;
  }

  async function cleanUp(work: OcmManifestWork): Promise<Requeue | undefined> {
    for (const [id, watch] of watches) {
      if (id.startsWith(`${work.metadata.name}|`)) {
        watch.abort();
      }
    }
    const name = recordName(work);
    const record = await spoke.get(appliedManifestWorks, { name });
    if (record) {
      if (!record.metadata.deletionTimestamp) {
        await spoke.delete(appliedManifestWorks, { name });
      }
      const orphanEverything = work.spec.deleteOption?.propagationPolicy === 'Orphan';
      const entries = orphanEverything ? [] : (record.status?.appliedResources ?? []);
      const gone = await Promise.all(entries.map((entry) => remove(entry, record)));
      if (gone.includes(false)) {
        return { requeueAfterMs: 100 };
      }
      await spoke.mergePatch(appliedManifestWorks, { name }, { metadata: { finalizers: null } });
    }
    const finalizers = (work.metadata.finalizers ?? []).filter((f) => f !== workFinalizer);
    await hub.mergePatch(ocmManifestWorks, work.metadata, { metadata: { finalizers } });
  }

  async function report(work: OcmManifestWork, results: Applied[]): Promise<void> {
    const current = works.get(work.metadata) ?? work;
    const before = current.status?.resourceStatus?.manifests ?? [];
    const manifests = results
      .map((result) => manifestStatus(work, result, before))
      .sort((a, b) => a.resourceMeta.ordinal - b.resourceMeta.ordinal);
    const generation = work.metadata.generation ?? 0;
    let conditions = current.status?.conditions;
    conditions = withCondition(conditions, summary(manifests, 'Applied', generation));
    conditions = withCondition(conditions, summary(manifests, 'Available', generation));
    const status = { conditions, resourceStatus: { manifests } };
    if (isDeepStrictEqual(current.status, status)) {
      return;
    }
    await hub.mergePatch(ocmManifestWorks, work.metadata, { status }, { subresource: 'status' });
  }

  function manifestStatus(work: OcmManifestWork, result: Applied, before: ManifestStatus[]): ManifestStatus {
    const { manifest, type, live, error, ordinal } = result;
    const [group = '', version = ''] = (manifest.apiVersion ?? '').includes('/')
      ? (manifest.apiVersion ?? '').split('/')
      : ['', manifest.apiVersion];
    const { name, namespace = '' } = manifest.metadata;
    const meta = { ordinal, group, version, kind: manifest.kind ?? '', resource: type?.plural ?? '', name, namespace };
    const previous = before.find((m) => m.resourceMeta.kind === meta.kind && m.resourceMeta.name === name)?.conditions;
    let conditions = withCondition(previous, {
      type: 'Applied',
      status: error ? 'False' : 'True',
      reason: error ? 'AppliedManifestFailed' : 'AppliedManifestComplete',
      message: error ? `Failed to apply manifest: ${error.message}` : 'Apply manifest complete',
    });
    const available: Omit<OcmCondition, 'type'> = type
      ? live
        ? { status: 'True', reason: 'ResourceAvailable', message: 'Resource is available' }
        : { status: 'False', reason: 'ResourceNotAvailable', message: 'Resource is not available' }
      : { status: 'Unknown', reason: 'IncompleteResourceMeta', message: 'Resource meta is incompleted' };
    conditions = withCondition(conditions, { type: 'Available', ...available });
    const rules = type && configOf(work, type, manifest)?.feedbackRules;
    if (!rules || !live) {
      const none = { status: 'True', reason: 'NoStatusFeedbackSynced', message: '' } as const;
      return {
        resourceMeta: meta,
        conditions: withCondition(conditions, { type: 'StatusFeedbackSynced', ...none }),
        statusFeedback: {},
      };
    }
    const { values, errors } = readFeedback(live, rules);
    conditions = withCondition(conditions, {
      type: 'StatusFeedbackSynced',
      status: errors.length > 0 ? 'False' : 'True',
      reason: errors.length > 0 ? 'StatusFeedbackSyncFailed' : 'StatusFeedbackSynced',
      message: errors.join('; '),
    });
    return { resourceMeta: meta, conditions, statusFeedback: { values } };
  }

  /** Manifests with `feedbackScrapeType: Watch` report their status as it changes. */
  function followWatched(work: OcmManifestWork, results: Applied[]): void {
    for (const { type, live } of results) {
      if (!type || !live || configOf(work, type, live)?.feedbackScrapeType !== 'Watch') {
        continue;
      }
      const { name, namespace } = live.metadata;
      const id = `${work.metadata.name}|${identityOf(type, live.metadata)}`;
      if (watches.has(id)) {
        continue;
      }
      const watch = new AbortController();
      watches.set(id, watch);
      const informer = new Informer({
        client: spoke,
        type,
        fieldSelector: `metadata.name=${name}`,
        ...(namespace && { namespace }),
        logger,
      });
      const refresh = () => queue.add(keyOf(work));
      // What is there first may be newer than what was applied and reported.
      informer.subscribe({ added: refresh, updated: refresh, deleted: refresh });
      void informer.run(AbortSignal.any([signal, watch.signal])).finally(() => watches.delete(id));
    }
  }

  const queue = new WorkQueue({
    name: `ocm-work-agent-${cluster}`,
    concurrency: 10,
    backoff: { initialMs: 2_000, factor: 2, maxMs: 120_000 },
    logger,
    handler: (key) =>
      reconcile(key).catch((error: unknown) => {
        // The work went away on the hub while it was worked on.
        if (!isNotFound(error) || works.get(parseKey(key))) {
          throw error;
        }
        return undefined;
      }),
  });
  const enqueue = (work: OcmManifestWork) => queue.add(keyOf(work));
  works.subscribe({
    added: enqueue,
    updated: (old, now) => {
      const isOurStatus = old.metadata.generation === now.metadata.generation && !now.metadata.deletionTimestamp;
      if (!isOurStatus) {
        enqueue(now);
      }
    },
    deleted: enqueue,
  });
  applied.subscribe({
    deleted: (record) => {
      const name = record.spec?.manifestWorkName;
      if (name) {
        queue.add(`${cluster}/${name}`);
      }
    },
  });
  const statusSync = setInterval(() => works.list().forEach(enqueue), statusSyncIntervalMs);
  signal.addEventListener('abort', () => clearInterval(statusSync), { once: true });
  const running = [works.run(signal), applied.run(signal)];
  await Promise.all([works.synced(signal), applied.synced(signal)]);
  await Promise.all([...running, queue.run(signal)]);
}

function summary(manifests: ManifestStatus[], type: 'Applied' | 'Available', observedGeneration: number): OcmCondition {
  const of = manifests.flatMap((m) => m.conditions.filter((c) => c.type === type));
  const failed = of.filter((c) => c.status === 'False').length;
  const unknown = of.filter((c) => c.status === 'Unknown').length;
  if (type === 'Applied') {
    return failed > 0
      ? {
          type,
          status: 'False',
          reason: 'AppliedManifestWorkFailed',
          message: 'Failed to apply manifest work',
          observedGeneration,
        }
      : {
          type,
          status: 'True',
          reason: 'AppliedManifestWorkComplete',
          message: 'Apply manifest work complete',
          observedGeneration,
        };
  }
  if (failed > 0) {
    return {
      type,
      status: 'False',
      reason: 'ResourcesNotAvailable',
      message: `${failed} of ${of.length} resources are not available`,
      observedGeneration,
    };
  }
  if (unknown > 0) {
    return {
      type,
      status: 'Unknown',
      reason: 'ResourcesStatusUnknown',
      message: `${unknown} of ${of.length} resources have unknown status`,
      observedGeneration,
    };
  }
  return {
    type,
    status: 'True',
    reason: 'ResourcesAvailable',
    message: 'All resources are available',
    observedGeneration,
  };
}

function configOf(work: OcmManifestWork, type: ResourceType, { metadata }: KubeObject): OcmManifestConfig | undefined {
  return (work.spec.manifestConfigs ?? []).find(({ resourceIdentifier }) =>
    selects(resourceIdentifier, type, metadata),
  );
}

function isOrphaned(work: OcmManifestWork, type: ResourceType, { metadata }: KubeObject): boolean {
  const { propagationPolicy, selectivelyOrphans } = work.spec.deleteOption ?? {};
  if (propagationPolicy === 'Orphan') {
    return true;
  }
  if (propagationPolicy !== 'SelectivelyOrphan') {
    return false;
  }
  return (selectivelyOrphans?.orphaningRules ?? []).some((rule) => selects(rule, type, metadata));
}

function selects(
  rule: ResourceIdentifier,
  type: ResourceType,
  { name, namespace = '' }: KubeObject['metadata'],
): boolean {
  const fits = (wanted: string, actual: string) =>
    new RegExp(`^${wanted.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(actual);
  return (
    (rule.group ?? '') === type.group &&
    rule.resource === type.plural &&
    fits(rule.name, name) &&
    fits(rule.namespace ?? '', namespace)
  );
}

function inventoryEntry(type: ResourceType, { metadata }: KubeObject): AppliedResource {
  return {
    group: type.group,
    version: type.version,
    resource: type.plural,
    ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    name: metadata.name,
    uid: metadata.uid ?? '',
  };
}

function identityOf(
  type: { group: string; resource: string } | ResourceType,
  object: { name: string; namespace?: string },
): string {
  const resource = 'plural' in type ? type.plural : type.resource;
  return [type.group, resource, object.namespace ?? '', object.name].join('/');
}
