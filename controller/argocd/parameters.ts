import type { ConfigMap, Deployment, StatefulSet } from '../../lib/kube/index.ts';
import { argoCdParamsName } from '../hub/index.ts';

/** A parameter of Argo CD that live access depends on: a key of {@link argoCdParamsName}. Those of Redis' keys and Sentinels came with 3.6. */
export type Parameter = 'redis.server' | 'redis.key.prefix' | 'redis.sentinel.hosts' | 'application.namespaces';

/** A Deployment or StatefulSet of Argo CD. */
export type Workload = Deployment | StatefulSet;

/** How a program of Argo CD gets a parameter, and its value without any setting. */
const known: Readonly<Record<Parameter, { flag: string; variable: string; fallback: string }>> = {
  'redis.server': { flag: '--redis', variable: 'REDIS_SERVER', fallback: 'argocd-redis:6379' },
  // Argo CD has no flag for it; the principal does.
  'redis.key.prefix': { flag: '--redis-key-prefix', variable: 'ARGOCD_REDIS_KEY_PREFIX', fallback: '' },
  'redis.sentinel.hosts': { flag: '--sentinel', variable: 'REDIS_SENTINEL_HOSTS', fallback: '' },
  'application.namespaces': {
    flag: '--application-namespaces',
    variable: 'ARGOCD_APPLICATION_NAMESPACES',
    fallback: '',
  },
};

/** A parameter as a program has it. `from` says where it is set: the shared ConfigMap, or the workload itself. */
export interface Reading {
  readonly value: string;
  readonly from: 'params' | 'flag' | 'variable';
}

/** Argo CD's API server, which serves its UI; undefined when there is none among the workloads. */
export function serverAmong(workloads: readonly Workload[]): Workload | undefined {
  return workloads.find(
    ({ metadata: { name, labels } }) =>
      name === 'argocd-server' || labels?.['app.kubernetes.io/component'] === 'server',
  );
}

/** The value of a parameter that a program starts with. Its flag comes before its environment, as in Argo CD. */
export function readParameter(workload: Workload, parameter: Parameter, params: ConfigMap | undefined): Reading {
  const { flag, variable, fallback } = known[parameter];
  const flagged = flagValue(wordsOf(workload), flag);
  if (flagged !== undefined) {
    return { value: flagged, from: 'flag' };
  }
  if (takesFromParams(workload, parameter)) {
    return { value: params?.data?.[parameter] || fallback, from: 'params' };
  }
  return { value: envOf(workload, variable)?.value || fallback, from: 'variable' };
}

/** Whether a program reads a parameter from the shared ConfigMap when it starts. */
export function takesFromParams(workload: Workload, parameter: Parameter): boolean {
  const { name, key } = (envOf(workload, known[parameter].variable)?.valueFrom?.configMapKeyRef ?? {}) as {
    name?: unknown;
    key?: unknown;
  };
  return name === argoCdParamsName && key === parameter;
}

/** The value of a parameter that is not set. */
export const fallbackOf = (parameter: Parameter): string => known[parameter].fallback;
/** The environment variable of a parameter. */
export const variableOf = (parameter: Parameter): string => known[parameter].variable;
/** The command-line flag of a parameter. */
export const flagOf = (parameter: Parameter): string => known[parameter].flag;

/** `deployment/name` or `statefulset/name`, as kubectl takes it. */
export const workloadText = ({ kind = 'Deployment', metadata }: Workload): string =>
  `${kind.toLowerCase()}/${metadata.name}`;

const containersOf = ({ spec }: Workload) => spec?.template?.spec?.containers ?? [];
const wordsOf = (workload: Workload) =>
  containersOf(workload).flatMap(({ command = [], args = [] }) => [...command, ...args]);
const envOf = (workload: Workload, variable: string) =>
  containersOf(workload)
    .flatMap(({ env = [] }) => env)
    .find(({ name }) => name === variable);

function flagValue(words: readonly string[], flag: string): string | undefined {
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  return at < 0 ? undefined : words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1);
}
