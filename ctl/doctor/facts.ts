import { type AppProject, appProjectSchema } from '../../lib/argocd/index.ts';
import { argoAppProjects } from '../../lib/bridge/index.ts';
import {
  type ConfigMap,
  configMaps,
  type Deployment,
  deployments,
  type EndpointSlice,
  endpointSlices,
  events,
  isForbidden,
  isNotFound,
  type KubeEvent,
  type KubeObject,
  type Lease,
  leases,
  type Namespace,
  namespaces,
  type ResourceType,
  type Secret,
  type Service,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { describeError } from '../../lib/ops/index.ts';
import type { ShownApplication } from '../../lib/way/index.ts';
import type { Side } from '../ctl-command.ts';
import { addOnKind, type Conditioned, fleetKind } from '../kinds.ts';

/** What is known of one side. Nothing is decided here. */
export interface Facts {
  readonly namespace: string;
  readonly context: string;
  readonly server: string;
  readonly now: Date;
  /** Why the API server does not answer; undefined when it does. */
  readonly unreachable: string | undefined;
  /** How far the API server's clock is ahead of this machine's, in ms; undefined when it is not known. */
  readonly skewMs: number | undefined;
  /** Kinds of which nothing is known, by their plural names: who asks may not list them, or the API server was silent. */
  readonly unknown: ReadonlyMap<string, 'refused' | 'silent'>;
  readonly secrets: readonly Secret[];
  readonly configMaps: readonly ConfigMap[];
  readonly leases: readonly Lease[];
  readonly services: readonly Service[];
  readonly endpointSlices: readonly EndpointSlice[];
  readonly deployments: readonly Deployment[];
  readonly events: readonly KubeEvent[];
  readonly namespaces: readonly Namespace[];
  readonly fleets: readonly Conditioned[];
  readonly addOns: readonly Conditioned[];
  /** Of a hub, in its own namespace. */
  readonly appProjects: readonly AppProject[];
  /** Looked at when both sides of an agent are: those of the agent. A large hub may have more. */
  readonly applications: readonly ShownApplication[];
  /** Rights that the programs of this side lack, as `verb resource`. */
  readonly missingRights: readonly { readonly account: string; readonly verb: string; readonly resource: string }[];
}

/** The right of a program that it cannot work without. */
interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** In the namespace of the program; everywhere otherwise. */
  readonly isLocal: boolean;
}

/** What decides whether a principal can work: it starts without these, and waits. */
export const principalRights: readonly Right[] = [
  { verb: 'list', group: '', resource: 'secrets', isLocal: true },
  { verb: 'watch', group: '', resource: 'secrets', isLocal: true },
  { verb: 'list', group: '', resource: 'configmaps', isLocal: true },
  { verb: 'list', group: 'argoproj.io', resource: 'appprojects', isLocal: true },
  { verb: 'list', group: 'argoproj.io', resource: 'applications', isLocal: false },
  { verb: 'watch', group: 'argoproj.io', resource: 'applications', isLocal: false },
  { verb: 'patch', group: 'argoproj.io', resource: 'applications', isLocal: false },
];

/** The same for an agent. */
export const agentRights: readonly Right[] = [
  { verb: 'list', group: '', resource: 'secrets', isLocal: true },
  { verb: 'list', group: '', resource: 'configmaps', isLocal: true },
  { verb: 'list', group: 'argoproj.io', resource: 'applications', isLocal: true },
  { verb: 'create', group: 'argoproj.io', resource: 'applications', isLocal: true },
  { verb: 'patch', group: 'argoproj.io', resource: 'applications', isLocal: true },
];

/** Longest wait for a side's answers, in ms: the whole examination takes less than 5 s. */
const patienceMs = 3_000;

/** Reads a side, everything at the same time. Never throws for what the side lacks. */
export async function readFacts(
  { client, namespace, context }: Side,
  program: { readonly deployment: RegExp; readonly rights: readonly Right[]; readonly isHub: boolean },
  signal: AbortSignal,
): Promise<Facts> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
  const unknown = new Map<string, 'refused' | 'silent'>();
  const base = { namespace, context, server: client.server, unknown };
  const answer = await askVersion(client, limited);
  const none = { secrets: [], configMaps: [], leases: [], services: [], endpointSlices: [], deployments: [] };
  const rest = { events: [], namespaces: [], fleets: [], addOns: [], appProjects: [], missingRights: [] };
  const applications: readonly ShownApplication[] = [];
  if ('unreachable' in answer) {
    const { unreachable } = answer;
    return { ...base, ...none, ...rest, applications, now: new Date(), skewMs: undefined, unreachable };
  }
  const read = async <T extends KubeObject>(
    type: ResourceType<T>,
    options: { namespace?: string } = {},
  ): Promise<T[]> => {
    try {
      return await client.list(type, { ...options, signal: limited });
    } catch (error) {
      if (isForbidden(error)) {
        unknown.set(type.plural, 'refused');
        return [];
      }
      if (isNotFound(error)) {
        return [];
      }
      signal.throwIfAborted();
      if (limited.aborted) {
        unknown.set(type.plural, 'silent');
        return [];
      }
      throw error;
    }
  };
  const own = { namespace };
  const hubOnly = <T extends KubeObject>(type: ResourceType<T>) => (program.isHub ? read(type) : Promise.resolve([]));
  const [found, maps, records, served, slices, deployed, recorded, spaces, fleets, addOns, projects] =
    await Promise.all([
      read(secrets, own),
      read(configMaps, own),
      read(leases, own),
      read(services, own),
      read(endpointSlices, own),
      read(deployments, own),
      read(events, own),
      read(namespaces),
      hubOnly(fleetKind),
      hubOnly(addOnKind),
      program.isHub ? read(argoAppProjects, own) : [],
    ]);
  const deployment = deployed.find(({ metadata }) => program.deployment.test(metadata.name));
  const account = deployment?.spec?.template?.spec?.serviceAccountName;
  const missingRights =
    account === undefined
      ? []
      : (
          await Promise.all(
            program.rights.map(async (right) => ({
              account,
              verb: right.verb,
              resource: right.group === '' ? right.resource : `${right.resource}.${right.group}`,
              isGranted: await isGranted(client, namespace, account, right, limited),
            })),
          )
        ).filter(({ isGranted: granted }) => granted === false);
  return {
    ...base,
    now: new Date(),
    unreachable: undefined,
    skewMs: answer.skewMs,
    secrets: found,
    configMaps: maps,
    leases: records,
    services: served,
    endpointSlices: slices,
    deployments: deployed,
    events: recorded,
    namespaces: spaces,
    fleets,
    addOns,
    appProjects: projects.map(projectOf),
    applications,
    missingRights,
  };
}

/** One that cannot be read goes to nobody, but it is there. */
function projectOf(project: KubeObject): AppProject {
  const parsed = appProjectSchema.safeParse(project);
  return parsed.success ? parsed.data : { metadata: { name: project.metadata.name }, spec: {} };
}

/** Asks the API server for its version, which everybody may, and compares clocks. */
async function askVersion(
  client: Side['client'],
  signal: AbortSignal,
): Promise<{ readonly skewMs: number | undefined } | { readonly unreachable: string }> {
  try {
    const asked = Date.now();
    const response = await client.request('/version', { signal, timeoutMs: patienceMs });
    await response.body.discard();
    const at = Date.parse(response.headers.date ?? '');
    // The header has whole seconds, of when the answer was made.
    return { skewMs: Number.isNaN(at) ? undefined : at + 500 - (asked + Date.now()) / 2 };
  } catch (error) {
    return isForbidden(error) ? { skewMs: undefined } : { unreachable: describeError(error) };
  }
}

/** Whether a service account has a right; undefined when nobody tells us. */
async function isGranted(
  client: Side['client'],
  namespace: string,
  account: string,
  right: Right,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const { verb, group, resource, isLocal } = right;
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: `system:serviceaccount:${namespace}:${account}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      resourceAttributes: { verb, group, resource, ...(isLocal ? { namespace } : {}) },
    },
  };
  try {
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const response = await client.request(path, { method: 'POST', body, signal });
    const review = JSON.parse(await response.body.text()) as { status?: { allowed?: boolean } };
    return review.status?.allowed === true;
  } catch {
    return undefined; // who may not ask is not told
  }
}
