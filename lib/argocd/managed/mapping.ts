/**
 * How the namespaces of hub and managed cluster correspond. Names are the same on both sides. Where `toLocal` has a place,
 * `toHub` leads back to it.
 */
export interface NamespaceMapping {
  /** Where Applications of this hub namespace live on the managed cluster; empty when there is no place for them. */
  toLocal(hub: string): string;
  /** Where Applications of this namespace of the managed cluster live on the hub. */
  toHub(local: string): string;
}

/** Namespace-based mapping: all Applications of an agent are in one namespace, on either side. */
export function oneNamespace(hub: string, local: string): NamespaceMapping {
  return { toLocal: () => local, toHub: () => hub };
}

/**
 * Destination-based mapping: Applications keep their namespace, except that the principal's namespace and the agent's
 * stand for each other, as in argocd-agent. A hub namespace that is called like the agent's, but is not the principal's,
 * has therefore no place there; argocd-agent would put both into one.
 * @param principal empty when it is not known: then all keep their namespace
 */
export function sameNamespaces(principal: string, agent: string): NamespaceMapping {
  if (principal === '' || principal === agent) {
    return { toLocal: (hub) => hub, toHub: (local) => local };
  }
  return {
    toLocal: (hub) => (hub === principal ? agent : hub === agent ? '' : hub),
    toHub: (local) => (local === agent ? principal : local === '' ? agent : local),
  };
}
