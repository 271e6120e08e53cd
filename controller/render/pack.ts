import { wellKnown } from '../../lib/base/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import type { ManifestConfig, ManifestWork } from '../hub/index.ts';

/** The greatest total size of the manifests in a ManifestWork, in bytes of JSON. OCM's admission refuses more. */
export const workLimit = 500 * 1024;

/** The parts of the add-on. Each has its own works. They are delivered in this order and removed in reverse order. */
export const workParts = ['crds', 'argocd', 'agent'] as const;
export type WorkPart = (typeof workParts)[number];

/** A rendered ManifestWork. */
export interface RenderedWork {
  readonly part: WorkPart;
  /** Position among the works of its part, from 0. */
  readonly index: number;
  readonly spec: ManifestWork['spec'];
}

/** A manifest is larger than {@link workLimit}. */
export class OversizedManifestError extends Error {
  override readonly name = 'OversizedManifestError';
  readonly code = 'OVERSIZED_MANIFEST';

  constructor(manifest: KubeObject, bytes: number) {
    super(
      `${describe(manifest)} has ${bytes} bytes; a ManifestWork takes at most ${workLimit} (500 KiB) and one object cannot be split`,
    );
  }
}

/** A manifest as `Kind namespace/name`, for messages. */
export function describe(manifest: KubeObject): string {
  const { namespace, name } = manifest.metadata;
  return `${manifest.kind} ${namespace ? `${namespace}/` : ''}${name}`;
}

/**
 * Packs manifests into as few works as the limit allows and keeps their order.
 * @param limit bytes of JSON per work
 * @throws OversizedManifestError when one manifest exceeds the limit
 */
export function pack(manifests: readonly KubeObject[], limit = workLimit): KubeObject[][] {
  const packed: KubeObject[][] = [];
  let room = 0;
  for (const manifest of manifests) {
    const bytes = Buffer.byteLength(JSON.stringify(manifest));
    if (bytes > limit) {
      throw new OversizedManifestError(manifest, bytes);
    }
    const last = packed.at(-1);
    if (last === undefined || bytes > room) {
      packed.push([manifest]);
      room = limit - bytes;
    } else {
      last.push(manifest);
      room -= bytes;
    }
  }
  return packed;
}

/**
 * The works of one part. Each gets those `configs` that match its manifests.
 * @throws OversizedManifestError when one manifest exceeds {@link workLimit}
 */
export function worksOf(
  part: WorkPart,
  manifests: readonly KubeObject[],
  configs: readonly ManifestConfig[],
  deleteOption: ManifestWork['spec']['deleteOption'],
): RenderedWork[] {
  return pack(manifests).map((share, index) => {
    const manifestConfigs = configs.filter(({ resourceIdentifier: { resource, namespace, name } }) =>
      share.some(
        ({ kind, metadata }) =>
          metadata.name === name && metadata.namespace === namespace && `${kind?.toLowerCase()}s` === resource,
      ),
    );
    return {
      part,
      index,
      spec: {
        workload: { manifests: share },
        ...(manifestConfigs.length > 0 ? { manifestConfigs } : {}),
        ...(deleteOption ? { deleteOption } : {}),
      },
    };
  });
}

/** A copy with argocd-pull-integration's label, by which the clean-up and users recognise the add-on's objects. */
export function withLabel(object: KubeObject): KubeObject {
  const labels = { ...object.metadata.labels, [wellKnown.managedByLabel]: 'argocd-agent-addon' };
  return { ...object, metadata: { ...object.metadata, labels } };
}
