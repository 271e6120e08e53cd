import type { PodSpec } from '../../lib/kube/index.ts';
import type { PodOf } from './pod-security.ts';

/** The user ids that OpenShift gives a namespace. */
const range = { first: 1_000_660_000, last: 1_000_669_999 } as const;

/** All pods that objects make or deliver: of Pods, Deployments, Jobs, CronJobs, works and AddOnTemplates. */
export function podsIn(of: string, value: unknown): PodOf[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const { kind, metadata } = value as { kind?: unknown; metadata?: { name?: unknown } };
  const here = typeof kind === 'string' && metadata !== undefined ? `${kind} ${metadata.name}` : of;
  const isPod = Array.isArray((value as { containers?: unknown }).containers);
  const own = isPod ? [{ of: here, spec: value as PodSpec }] : [];
  return [...own, ...Object.values(value).flatMap((part) => podsIn(here, part))];
}

/**
 * What OpenShift's security context constraint `restricted-v2` has against the ids of pods: it refuses `runAsUser` and `fsGroup` outside the
 * range of the namespace, and sets them where they are absent.
 */
export function idRefusals(pods: readonly PodOf[]): string[] {
  return pods.flatMap(({ of, spec }) => {
    const containers = [...(spec.initContainers ?? []), ...spec.containers];
    const contexts = [spec, ...containers].map(({ securityContext }) => securityContext as Ids | undefined);
    return contexts.flatMap((context) =>
      (['runAsUser', 'fsGroup'] as const).flatMap((field) => {
        const id = context?.[field];
        return id === undefined || (id >= range.first && id <= range.last) ? [] : [`${of}: ${field} ${id}`];
      }),
    );
  });
}

/** The pods of which a container may run as root: neither it nor its pod says that it must not. */
export function rootPods(pods: readonly PodOf[]): string[] {
  const refuses = ({ securityContext }: PodSpec | PodSpec['containers'][number]) =>
    (securityContext as Ids | undefined)?.runAsNonRoot === true;
  return pods
    .filter(({ spec }) => !refuses(spec) && ![...(spec.initContainers ?? []), ...spec.containers].every(refuses))
    .map(({ of }) => of);
}

interface Ids {
  readonly runAsUser?: number;
  readonly fsGroup?: number;
  readonly runAsNonRoot?: boolean;
}
