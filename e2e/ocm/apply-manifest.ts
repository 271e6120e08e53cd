import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { KubeClient, KubeObject, OwnerReference, ResourceType } from '../../lib/kube/index.ts';
import type { OcmManifestConfig } from './types.ts';

/** What the work agent remembers of its last write of an object; it skips an object that nobody touched since. */
export type ApplyCache = Map<string, { manifest: string; resourceVersion: string | undefined }>;

/** Brings one manifest onto the managed cluster by the update strategy of the work, and returns the live object. */
export async function applyManifest(
  spoke: KubeClient,
  type: ResourceType,
  manifest: KubeObject,
  owner: OwnerReference | undefined,
  strategy: OcmManifestConfig['updateStrategy'],
  cache: ApplyCache,
): Promise<KubeObject> {
  const key = keyFor(manifest);
  const live = await spoke.get(type, key);
  const desired = withOwner(manifest, owner, live);
  switch (strategy?.type ?? 'Update') {
    case 'ReadOnly':
      if (!live) {
        throw new Error(`${type.plural} "${key.name}" not found`);
      }
      return live;
    case 'ServerSideApply':
      return await serverSideApply(spoke, type, desired, live, strategy?.serverSideApply ?? {});
    case 'CreateOnly':
      return live ?? (await spoke.create(type, desired));
    default:
      return await update(spoke, type, desired, live, cache);
  }
}

const hashAnnotation = 'open-cluster-management.io/config-spec-hash';

/**
 * OCM's `ServerSideApply`. With ignored fields the live object bears the hash of what was applied last, and is written only
 * when that is another: `OnSpokePresent` fields are sent when the object is made and never again, `OnSpokeChange` fields
 * whenever the manifest has changed.
 */
async function serverSideApply(
  spoke: KubeClient,
  type: ResourceType,
  desired: KubeObject,
  live: KubeObject | undefined,
  options: NonNullable<NonNullable<OcmManifestConfig['updateStrategy']>['serverSideApply']>,
): Promise<KubeObject> {
  const { fieldManager = 'work-agent', force = false, ignoreFields = [] } = options;
  if (ignoreFields.length === 0) {
    return await spoke.apply(type, desired, { fieldManager, force });
  }
  const { ownerReferences, ...metadata } = desired.metadata;
  const hashed = structuredClone({ ...desired, metadata });
  for (const { condition, jsonPaths = [] } of ignoreFields) {
    if (condition !== 'OnSpokeChange') {
      for (const path of jsonPaths) {
        removeField(hashed, path);
      }
    }
  }
  const hash = createHash('md5').update(JSON.stringify(hashed)).digest('hex');
  if (live?.metadata.annotations?.[hashAnnotation] === hash) {
    return live;
  }
  const sent = live ? hashed : { ...desired, metadata };
  const annotations = { ...sent.metadata.annotations, [hashAnnotation]: hash };
  const owned = { ...sent.metadata, annotations, ...(ownerReferences && { ownerReferences }) };
  return await spoke.apply(type, { ...sent, metadata: owned }, { fieldManager, force });
}

/** Removes what a path of plain fields, like `.spec.replicas`, leads to. */
function removeField(object: object, path: string): void {
  const fields = path.split('.').filter((field) => field !== '');
  const last = fields.pop();
  let at: unknown = object;
  for (const field of fields) {
    at = (at as Record<string, unknown> | undefined)?.[field];
  }
  if (last !== undefined && at) {
    delete (at as Record<string, unknown>)[last];
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
  if (!live) {
    return remember(await spoke.create(type, desired));
  }
  const last = cache.get(id);
  if (last?.manifest === manifest && last.resourceVersion === live.metadata.resourceVersion) {
    return live;
  }
  const merged = merge(desired, live);
  if (isDeepStrictEqual(merged, live)) {
    return remember(live);
  }
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
  if (live.kind === 'ServiceAccount') {
    Object.assign(merged, secrets && { secrets }, imagePullSecrets && { imagePullSecrets });
  }
  if (live.kind === 'Service') {
    merged.spec = keepAddresses(merged.spec, (live as { spec?: unknown }).spec);
  }
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
