import { matchesAny } from '../lib/bridge/index.ts';

/** What ownership is decided by. */
interface Owned {
  readonly metadata: { readonly namespace?: string };
  readonly spec: { readonly destination?: { readonly name?: string } };
}

/**
 * Which agent an Application belongs to, undefined for none: its namespace must be allowed, and the agent must have a
 * cluster Secret. The agent is named by the Application's namespace or, with destination-based mapping, by
 * `spec.destination.name`, where an empty name and `in-cluster` mean the hub itself and the principal's own namespace is
 * always allowed.
 */
export function ownership(options: {
  namespace: string;
  allowedNamespaces: readonly string[];
  destinationBasedMapping: boolean;
  isMapped: (agent: string) => boolean;
}): (application: Owned) => string | undefined {
  const { destinationBasedMapping, isMapped } = options;
  const allowed = destinationBasedMapping
    ? [options.namespace, ...options.allowedNamespaces]
    : options.allowedNamespaces;
  return ({ metadata: { namespace = '' }, spec }) => {
    if (!matchesAny(allowed, namespace)) return undefined;
    const agent = destinationBasedMapping ? (spec.destination?.name ?? '') : namespace;
    if (agent === '' || (destinationBasedMapping && agent === 'in-cluster')) return undefined;
    return isMapped(agent) ? agent : undefined;
  };
}
