import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { KubeClient, KubeObject, OwnerReference, ResourceType } from '../../lib/kube/index.ts';
import type { ManifestConfig } from './types.ts';

/** What the work agent remembers of its last write of an object; it skips an object that nobody touched since. */
export type ApplyCache = Map<string, { manifest: string; resourceVersion: string | undefined }>;

/** Brings one manifest onto the managed cluster by the update strategy of the work, and returns the live object. */
export async function applyManifest(
  spoke: KubeClient,
  type: ResourceType,
  manifest: KubeObject,
  owner: OwnerReference | undefined,
  strategy: ManifestConfig['updateStrategy'],
  cache: ApplyCache,
): Promise<KubeObject> {
  const key = keyFor(manifest);
  const live = await spoke.get(type, key);
  const desired = withOwner(manifest, owner, live);
  switch (strategy?.type ?? 'Update') {
    case 'ReadOnly':
      if (!live) throw new Error(`${type.plural} "${key.name}" not found`);
      return live;
    case 'ServerSideApply':
      return await spoke.apply(type, desired, {
        fieldManager: strategy?.serverSideApply?.fieldManager ?? 'work-agent',
        force: strategy?.serverSideApply?.force ?? false,
      });
    case 'CreateOnly':
      return live ?? (await spoke.create(type, desired));
    default:
      return await update(spoke, type, desired, live, cache);
  }
}

async function update(
  spoke: KubeClient,
  type: ResourceType,
  desired: KubeObject,
  live: KubeObject | undefined,
  cache: ApplyCache,
): Promise<KubeObject> {
  const id = [type.group, type.plural, desired.metadata.namespace, desired.metadata.name].join('/');
  const manifest = createHash('sha256').update(JSON.stringify(desired)).digest('hex');
  const remember = (object: KubeObject) => {
    cache.set(id, { manifest, resourceVersion: object.metadata.resourceVersion });
    return object;
  };
  if (!live) return remember(await spoke.create(type, desired));
  const last = cache.get(id);
  if (last?.manifest === manifest && last.resourceVersion === live.metadata.resourceVersion) return live;
  const merged = merge(desired, live);
  if (isDeepStrictEqual(merged, live)) return remember(live);
  return remember(await spoke.replace(type, merged));
}

/**
 * OCM's `Update`: labels, annotations and owner references are merged into the live object, its finalizers stay, and
 * everything else is replaced, except what the cluster itself decides (status, a Service's addresses, a
 * ServiceAccount's Secrets).
 */
function merge(desired: KubeObject, live: KubeObject): KubeObject {
  const { metadata: _ignored, status: _status, ...rest } = desired as KubeObject & { status?: unknown };
  const { metadata, status, secrets, imagePullSecrets } = live as KubeObject & Record<string, unknown>;
  const merged: KubeObject & Record<string, unknown> = {
    ...rest,
    ...(status !== undefined && { status }),
    metadata: {
      ...metadata,
      ...mergedMap('labels', desired, live),
      ...mergedMap('annotations', desired, live),
      ...(desired.metadata.ownerReferences && { ownerReferences: desired.metadata.ownerReferences }),
    },
  };
  if (live.kind === 'ServiceAccount')
    Object.assign(merged, secrets && { secrets }, imagePullSecrets && { imagePullSecrets });
  if (live.kind === 'Service') merged.spec = keepAddresses(merged.spec, (live as { spec?: unknown }).spec);
  return merged;
}

function mergedMap(field: 'labels' | 'annotations', desired: KubeObject, live: KubeObject) {
  const merged = { ...live.metadata[field], ...desired.metadata[field] };
  return Object.keys(merged).length > 0 ? { [field]: merged } : {};
}

function keepAddresses(desired: unknown, live: unknown): unknown {
  const { clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy, internalTrafficPolicy, sessionAffinity } = live as Record<
    string,
    unknown
  >;
  return {
    clusterIP,
    clusterIPs,
    ipFamilies,
    ipFamilyPolicy,
    internalTrafficPolicy,
    sessionAffinity,
    ...(desired as object),
  };
}

function withOwner(manifest: KubeObject, owner: OwnerReference | undefined, live: KubeObject | undefined): KubeObject {
  const others = (live?.metadata.ownerReferences ?? []).filter((o) => o.uid !== owner?.uid);
  const ownerReferences = owner ? [...others, owner] : others;
  return {
    ...manifest,
    metadata: { ...manifest.metadata, ...(ownerReferences.length > 0 && { ownerReferences }) },
  };
}

function keyFor({ metadata: { name, namespace } }: KubeObject) {
  return { name, ...(namespace !== undefined && { namespace }) };
}
