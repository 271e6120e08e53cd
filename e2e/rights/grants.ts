import type { PolicyRule } from '../../lib/kube/index.ts';
import type { ApiRequest } from './audit.ts';

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

/** A grant, and the role and the binding that it takes, by their ids. */
export interface Given extends Grant {
  readonly by: readonly string[];
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
  const is = (given: string, asked: string) => given === asked || given === '*';
  return (
    (grant.namespace === '' || grant.namespace === request.namespace) &&
    is(grant.group, request.group) &&
    is(grant.resource, request.resource) &&
    is(grant.verb, request.verb) &&
    (grant.names === undefined || grant.names.includes(request.name))
  );
}

/**
 * Whether a request could be refused only because rights were taken away before: who uninstalls a program takes its roles
 * before it hears of its end.
 * @param taken when roles and bindings were deleted, by their ids
 */
export function comesLate(request: ApiRequest, given: readonly Given[], taken: ReadonlyMap<string, number>): boolean {
  return given.some(
    (grant) => allows(grant, request) && grant.by.some((id) => (taken.get(id) ?? Infinity) <= request.at),
  );
}

/** Whether a grant is for whatever there may be. */
const isWide = ({ group, resource, verb }: Grant) => [group, resource, verb].includes('*');

/**
 * What the API server asks for by itself when it admits some of these requests: whoever approves or signs a certificate must
 * have the right to do that for its signer. That is no request of its own, so it is taken as asked for each signer that the
 * grants name.
 */
export function impliedBy(requests: readonly ApiRequest[], grants: readonly Grant[]): ApiRequest[] {
  const verbs: Readonly<Record<string, string>> = {
    'certificatesigningrequests/approval': 'approve',
    'certificatesigningrequests/status': 'sign',
  };
  const signers = new Set(grants.flatMap(({ resource, names = [] }) => (resource === 'signers' ? names : [])));
  return requests.flatMap((request) => {
    const verb = verbs[request.resource];
    const isWrite = request.verb === 'update' || request.verb === 'patch';
    if (verb === undefined || !isWrite || !request.allowed || request.group !== 'certificates.k8s.io') {
      return [];
    }
    return [...signers].map((name) => ({ ...request, verb, resource: 'signers', name }));
  });
}

/**
 * Grants that could be taken away without any of the requests being refused: nobody used them, or whatever used them
 * is also allowed by another grant. One that is wide makes none of the others superfluous.
 */
export function superfluous(grants: readonly Grant[], requests: readonly ApiRequest[]): Grant[] {
  const needed = new Set<Grant>();
  for (const request of requests) {
    const allowing = grants.filter((grant) => allows(grant, request));
    const narrow = allowing.filter((grant) => !isWide(grant));
    const [only, another] = narrow.length > 0 ? narrow : allowing;
    if (only && !another) {
      needed.add(only);
    }
  }
  return grants.filter((grant) => !needed.has(grant));
}

/** The requests that nothing but a wide grant allows: what it is for must explain them. */
export function onlyWidely(grants: readonly Grant[], requests: readonly ApiRequest[]): ApiRequest[] {
  return requests.filter((request) => {
    const allowing = grants.filter((grant) => allows(grant, request));
    return allowing.length > 0 && allowing.every(isWide);
  });
}
