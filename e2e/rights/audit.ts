import { readFile } from 'node:fs/promises';
import { z } from 'zod';

/** What someone asked an API server for, as RBAC sees it. */
export interface ApiRequest {
  /** `system:serviceaccount:<namespace>:<name>`. */
  user: string;
  verb: string;
  group: string;
  /** With the subresource: `deployments/status`. */
  resource: string;
  /** Empty for cluster-scoped resources and requests over all namespaces. */
  namespace: string;
  /** Empty for requests over many objects. */
  name: string;
  allowed: boolean;
  /** When it was asked for first, in milliseconds since the epoch. */
  at: number;
}

const auditEvent = z.object({
  verb: z.string(),
  requestReceivedTimestamp: z.string(),
  user: z.object({ username: z.string() }),
  objectRef: z
    .object({
      resource: z.string(),
      subresource: z.string().optional(),
      apiGroup: z.string().default(''),
      namespace: z.string().default(''),
      name: z.string().default(''),
    })
    .optional(),
  responseStatus: z.object({ code: z.number().optional() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

/**
 * The requests of one user in an API server's audit log, each kind once. Discovery and reviews of one's own rights,
 * which everybody may do, are left out.
 */
export async function requestsOf(auditLog: string, user: string): Promise<ApiRequest[]> {
  const found = new Map<string, ApiRequest>();
  // The last line may still be being written.
  const lines = (await readFile(auditLog, 'utf8')).split('\n').slice(0, -1);
  for (const line of lines) {
    if (!line.includes(`"username":"${user}"`)) {
      continue;
    }
    const { verb, objectRef, responseStatus, annotations, ...event } = auditEvent.parse(JSON.parse(line));
    if (!objectRef || /^self\w+reviews$/.test(objectRef.resource)) {
      continue;
    }
    const { subresource, apiGroup: group, namespace, name } = objectRef;
    const request = {
      user,
      verb,
      group,
      resource: subresource ? `${objectRef.resource}/${subresource}` : objectRef.resource,
      namespace,
      name,
      allowed: annotations?.['authorization.k8s.io/decision'] === 'allow',
    };
    // What makes an object by applying it needs the right to create it, too.
    const verbs = responseStatus?.code === 201 ? new Set([verb, 'create']) : [verb];
    for (const one of verbs) {
      const key = JSON.stringify({ ...request, verb: one });
      const at = Math.min(Date.parse(event.requestReceivedTimestamp), found.get(key)?.at ?? Number.POSITIVE_INFINITY);
      found.set(key, { ...request, verb: one, at });
    }
  }
  return [...found.values()];
}

/** The roles and bindings that were deleted, as {@link idOfRights} calls them, and when that was asked for. */
export async function takenAway(auditLog: string): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  for (const line of (await readFile(auditLog, 'utf8')).split('\n').slice(0, -1)) {
    if (!line.includes('"verb":"delete"') || !line.includes('"apiGroup":"rbac.authorization.k8s.io"')) {
      continue;
    }
    const { objectRef, responseStatus, requestReceivedTimestamp } = auditEvent.parse(JSON.parse(line));
    if (!objectRef || responseStatus?.code !== 200) {
      continue;
    }
    const { resource, namespace, name } = objectRef;
    const id = idOfRights(resource, namespace, name);
    if (!taken.has(id)) {
      taken.set(id, Date.parse(requestReceivedTimestamp));
    }
  }
  return taken;
}

/** How a role or binding is known. */
export function idOfRights(resource: string, namespace: string | undefined, name: string): string {
  return `${resource} ${namespace ?? ''}/${name}`;
}
