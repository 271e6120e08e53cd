import { wellKnown } from '../../lib/base/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import type { ManifestConfig, ManifestWork } from '../hub/index.ts';

/** OCM's admission refuses a work whose manifests are longer than this together, in bytes of JSON. */
export const workLimit = 500 * 1024;

/** Which of the works: they are delivered in this order and removed in the reverse one. */
export const workParts = ['crds', 'argocd', 'agent'] as const;
export type WorkPart = (typeof workParts)[number];

/** One ManifestWork's content. */
export interface RenderedWork {
  readonly part: WorkPart;
  /** Position among the works of its part. */
  readonly index: number;
  readonly spec: ManifestWork['spec'];
}

/** A manifest that no work can carry. */
export class OversizedManifestError extends Error {
  override readonly name = 'OversizedManifestError';
  readonly code = 'OVERSIZED_MANIFEST';

  constructor(manifest: KubeObject, bytes: number) {
    super(
      `${describe(manifest)} has ${bytes} bytes; a ManifestWork takes at most ${workLimit} (500 KiB) and one object cannot be split`,
    );
  }
}

/** Describes a manifest for a message. */
export function describe(manifest: KubeObject): string {
  const { namespace, name } = manifest.metadata;
  return `${manifest.kind} ${namespace ? `${namespace}/` : ''}${name}`;
}

/**
 * Packs manifests into as few works as the limit allows, in their order.
 * @throws OversizedManifestError
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
 * The works of one part: each gets those options that concern its manifests.
 * @throws OversizedManifestError
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

/** A copy with the label by which the clean-up and users know the add-on's objects, the original's. */
export function withLabel(object: KubeObject): KubeObject {
  const labels = { ...object.metadata.labels, [wellKnown.managedByLabel]: 'argocd-agent-addon' };
  return { ...object, metadata: { ...object.metadata, labels } };
}
