import type { ApiRequest } from './audit.ts';

/** A rule of a Role or ClusterRole, as in rbac.authorization.k8s.io/v1. */
export interface PolicyRule {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  verbs: string[];
}

/** One verb on one resource that a role gives to someone. */
export interface Grant {
  /** `Role name` or `ClusterRole name`. */
  role: string;
  /** The namespace that the binding gives it in; empty: all, and cluster-scoped resources. */
  namespace: string;
  group: string;
  resource: string;
  verb: string;
  /** Only objects of these names; left out: all. */
  names?: readonly string[];
}

/** The grants of a role's rules. */
export function grantsOf(role: string, namespace: string, rules: readonly PolicyRule[]): Grant[] {
  return rules.flatMap(({ apiGroups = [], resources = [], verbs, resourceNames: names }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.map((verb) => ({ role, namespace, group, resource, verb, ...(names && { names }) })),
      ),
    ),
  );
}

/** How a grant is written in a table and in messages: `ClusterRole x: get secrets in argocd`. */
export function describeGrant({ role, namespace, group, resource, verb, names }: Grant): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `${role}: ${verb} ${kind}${names ? ` [${names.join(', ')}]` : ''}${namespace && ` in ${namespace}`}`;
}

/** Whether a grant allows a request, as the RBAC authorizer decides. */
export function allows(grant: Grant, request: ApiRequest): boolean {
  return (
    (grant.namespace === '' || grant.namespace === request.namespace) &&
    grant.group === request.group &&
    grant.resource === request.resource &&
    grant.verb === request.verb &&
    (grant.names === undefined || grant.names.includes(request.name))
  );
}

/**
 * Grants that could be taken away without any of the requests being refused: nobody used them, or whatever used them
 * is also allowed by another grant.
 */
export function superfluous(grants: readonly Grant[], requests: readonly ApiRequest[]): Grant[] {
  const needed = new Set<Grant>();
  for (const request of requests) {
    const [only, another] = grants.filter((grant) => allows(grant, request));
    if (only && !another) needed.add(only);
  }
  return grants.filter((grant) => !needed.has(grant));
}
