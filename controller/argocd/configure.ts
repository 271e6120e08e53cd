import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type KeyedMutex, wellKnown } from '../../lib/base/index.ts';
import {
  type ConfigMap,
  configMaps,
  deployments,
  isForbidden,
  isNotFound,
  type KubeClient,
  type ResourceType,
  statefulSets,
} from '../../lib/kube/index.ts';
import {
  type Applier,
  argoCdParamsName,
  type Caches,
  type FleetReasons,
  fieldManager,
  type GitOpsCluster,
  type HubEvents,
  isOurs,
  keys,
  managedBy,
  type StepResult,
} from '../hub/index.ts';
import { parametersCondition } from './condition.ts';
import { ownerOf } from './owner.ts';
import { readParameter, serverAmong, takesFromParams, type Workload, workloadText } from './parameters.ts';
import { type ConfiguredParameters, configuredParametersOf, planParameters } from './plan.ts';
import type { ParameterRequirement } from './requirements.ts';

/** The controller lacks the right to restart programs. The message has the commands that do it. */
export class RestartRefusedError extends Error {
  override readonly name = 'RestartRefusedError';
  readonly code = 'RESTART_REFUSED';

  constructor(commands: readonly string[]) {
    super(`the controller may not restart programs that read what has changed; run: ${commands.join(' && ')}`);
  }
}

/** On pod templates of Argo CD: a checksum of the parameters that the controller has set and that the pods read. */
const checksumKey = `checksum/${argoCdParamsName}`;

/** What {@link configureArgoCd} works with. */
export interface ArgoCdDeps {
  readonly client: Pick<KubeClient, 'create' | 'delete' | 'mergePatch'>;
  readonly caches: Pick<Caches, 'argoCdParams' | 'argoCdWorkloads'>;
  readonly applier: Pick<Applier, 'current' | 'wrote'>;
  readonly events: Pick<HubEvents, 'normal'>;
  /** GitOpsClusters of one namespace share its Argo CD. */
  readonly mutex: KeyedMutex;
}

/** An Argo CD of the hub, and what is required of it. */
export interface ArgoCdScope {
  /** Argo CD's namespace. */
  readonly namespace: string;
  readonly requirements: readonly ParameterRequirement[];
  /** Whether its owner has consented to changes. Without, the controller gives back what it has set. */
  readonly isConsented: boolean;
  /** Whether the principal's proxy answers. Before, Argo CD is not sent to it; what was set before stays. */
  readonly isReady: boolean;
  /** The GitOpsCluster that Events are about. */
  readonly gitOpsCluster: GitOpsCluster;
  readonly signal: AbortSignal;
}

/**
 * Sets the parameters of the hub's own Argo CD with its owner's consent, and restarts the programs that read them; without
 * consent gives back what was set. Parameters that somebody else keeps as they are (argocd-operator, Helm, Argo CD, Flux)
 * are left alone.
 * @returns what is still to be done by the user, as a condition; undefined when there is no Argo CD, or no requirement
 */
export async function configureArgoCd(
  deps: ArgoCdDeps,
  scope: ArgoCdScope,
): Promise<StepResult<FleetReasons['HubArgoCDCompatible']>> {
  const { caches, mutex } = deps;
  const { namespace, requirements, isConsented, isReady } = scope;
  const workloads = caches.argoCdWorkloads(namespace);
  const server = serverAmong(workloads);
  const cached = caches.argoCdParams(namespace);
  const owner = ownerOf(cached, server);
  const open =
    server === undefined
      ? []
      : requirements.filter(({ parameter, fits }) => !fits(readParameter(server, parameter, cached).value));
  const configured = configuredParametersOf(cached);
  const configurable = requirements.filter(({ parameter }) => server && takesFromParams(server, parameter));
  const wanted = isConsented ? configurable.filter(({ parameter }) => isReady || parameter in configured) : [];
  let params = cached;
  const isMarked = (one: Workload) => checksumOf(one) !== undefined;
  if (
    owner === undefined &&
    (hasMark(cached) || workloads.some(isMarked) || wanted.some((requirement) => open.includes(requirement)))
  ) {
    params = await mutex.run(`argocd ${namespace}`, async () => {
      const written = await writeParameters(deps, scope, wanted);
      await restartReaders(deps, scope, configuredParametersOf(written));
      return written;
    });
  }
  return server && parametersCondition({ namespace, requirements, params, server, workloads, owner, isConsented });
}

const hasMark = (params: ConfigMap | undefined) => params?.metadata.annotations?.[keys.configuredParams] !== undefined;

/** Brings the ConfigMap up to date. A change in between is a conflict. */
async function writeParameters(
  { client, caches, applier, events }: ArgoCdDeps,
  { namespace, gitOpsCluster, signal }: ArgoCdScope,
  wanted: readonly ParameterRequirement[],
): Promise<ConfigMap | undefined> {
  const key = { namespace, name: argoCdParamsName };
  const live = await applier.current(configMaps, key, caches.argoCdParams(namespace), signal);
  const before = configuredParametersOf(live);
  const { data, configured } = planParameters(live?.data ?? {}, before, wanted);
  if (Object.keys(data).length === 0 && isDeepStrictEqual(configured, before)) {
    return live;
  }
  const options = { fieldManager, signal };
  const mark = Object.keys(configured).length === 0 ? null : JSON.stringify(configured);
  const what = `ConfigMap ${namespace}/${argoCdParamsName}`;
  if (live === undefined) {
    const labels = { [wellKnown.managedByLabel]: managedBy, [wellKnown.partOfLabel]: 'argocd' };
    const metadata = { ...key, labels, annotations: { [keys.configuredParams]: mark ?? '' } };
    const made = await client.create(configMaps, { metadata, data: data as Record<string, string> }, options);
    applier.wrote(configMaps, made);
    events.normal(gitOpsCluster, 'HubArgoCDConfigured', `${what} is created with ${changesText(data)}`);
    return made;
  }
  const { uid, resourceVersion } = live.metadata;
  const left = Object.keys(live.data ?? {}).filter((name) => data[name] !== null);
  if (isOurs(live) && mark === null && left.length === 0) {
    await client.delete(configMaps, key, { uid, resourceVersion, signal });
    events.normal(gitOpsCluster, 'HubArgoCDGivenBack', `${what}, which the controller had created, is deleted`);
    return undefined;
  }
  const metadata = { resourceVersion, annotations: { [keys.configuredParams]: mark } };
  const written = await client.mergePatch(configMaps, key, { metadata, data }, options);
  applier.wrote(configMaps, written);
  if (Object.keys(data).length > 0) {
    const reason = wanted.some(({ parameter }) => parameter in data) ? 'HubArgoCDConfigured' : 'HubArgoCDGivenBack';
    events.normal(gitOpsCluster, reason, `${what} is changed: ${changesText(data)}`);
  }
  return written;
}

const changesText = (data: Readonly<Record<string, string | null>>) =>
  Object.entries(data)
    .map(([name, value]) => (value === null ? `${name} removed` : `${name}=${JSON.stringify(value)}`))
    .join(', ');

/** Replaces the pods of the programs that read what the controller has set, or had set. */
async function restartReaders(
  { client, caches, applier, events }: ArgoCdDeps,
  { namespace, gitOpsCluster, signal }: ArgoCdScope,
  configured: ConfiguredParameters,
): Promise<void> {
  const refused: string[] = [];
  for (const cached of caches.argoCdWorkloads(namespace)) {
    const type: ResourceType<Workload> = cached.kind === 'StatefulSet' ? statefulSets : deployments;
    const workload = (await applier.current(type, cached.metadata, cached, signal)) ?? cached;
    const checksum = checksumFor(workload, configured) ?? null;
    if ((checksumOf(workload) ?? null) === checksum) {
      continue;
    }
    const patch = { spec: { template: { metadata: { annotations: { [checksumKey]: checksum } } } } };
    try {
      applier.wrote(type, await client.mergePatch(type, workload.metadata, patch, { fieldManager, signal }));
      events.normal(gitOpsCluster, 'HubArgoCDRestarted', `${workloadText(workload)} reads changed parameters`);
    } catch (error) {
      if (isForbidden(error)) {
        refused.push(
          `kubectl -n ${namespace} patch ${workloadText(workload)} --type merge -p '${JSON.stringify(patch)}'`,
        );
      } else if (!isNotFound(error)) {
        throw error;
      }
    }
  }
  if (refused.length > 0) {
    throw new RestartRefusedError(refused);
  }
}

const checksumOf = ({ spec }: Workload) => spec?.template?.metadata?.annotations?.[checksumKey];

/** The checksum of what a program reads of the parameters that the controller has set; undefined when it reads none. */
export function checksumFor(workload: Workload, configured: ConfiguredParameters): string | undefined {
  const read = Object.entries(configured)
    .filter(([parameter]) => takesFromParams(workload, parameter as keyof ConfiguredParameters))
    .map(([parameter, { set }]) => [parameter, set]);
  return read.length === 0 ? undefined : createHash('sha256').update(JSON.stringify(read)).digest('hex');
}
