import type { ConfigMap } from '../../lib/kube/index.ts';
import { argoCdParamsName, type FleetReasons, failed, quoted, type StepResult, succeeded } from '../hub/index.ts';
import type { Owner } from './owner.ts';
import {
  flagOf,
  type Parameter,
  type Reading,
  readParameter,
  takesFromParams,
  variableOf,
  type Workload,
  workloadText,
} from './parameters.ts';
import type { ParameterRequirement } from './requirements.ts';
import { shellWord } from './shell.ts';

/** The hub's Argo CD as it is, and what is required of it. */
export interface ArgoCdState {
  readonly namespace: string;
  readonly requirements: readonly ParameterRequirement[];
  readonly params: ConfigMap | undefined;
  readonly server: Workload;
  readonly workloads: readonly Workload[];
  readonly owner: Owner | undefined;
  readonly isConsented: boolean;
}

interface OpenRequirement {
  readonly requirement: ParameterRequirement;
  readonly reading: Reading;
}

/** Whether the UI of the hub's Argo CD can show the clusters; if not, what the user has to run or to set. */
export function parametersCondition(state: ArgoCdState): StepResult<FleetReasons['HubArgoCDCompatible']> {
  const { requirements, params, server, owner, isConsented } = state;
  if (requirements.length === 0) {
    return undefined;
  }
  const open = requirements
    .map((requirement) => ({ requirement, reading: readParameter(server, requirement.parameter, params) }))
    .filter(({ requirement, reading }) => !requirement.fits(reading.value));
  if (open.length === 0) {
    return succeeded(`Argo CD's server ${server.metadata.namespace}/${server.metadata.name} is set up for live access`);
  }
  const problem = open.map((one) => problemText(state, one)).join('; ');
  if (isConsented && owner === undefined && open.every(isReplaceable)) {
    return failed(`${problem}. The controller sets it when the principal is ready`, 'InProgress');
  }
  const shared = open.filter(({ reading }) => reading.from === 'params' || owner?.givesFlags);
  const own = open.filter((one) => !shared.includes(one));
  const advice = [
    ...(shared.length > 0 ? [owner ? ownerAdvice(owner, shared) : userAdvice(state, shared)] : []),
    ...own.map((one) => workloadAdvice(state, one)),
  ];
  return failed(`${problem}. ${advice.join('. ')}`, 'HubArgoCDNotConfigured');
}

function problemText({ namespace, params, server }: ArgoCdState, { requirement, reading }: OpenRequirement): string {
  const place = {
    params: `${requirement.parameter} in ConfigMap ${namespace}/${argoCdParamsName}`,
    flag: `flag ${flagOf(requirement.parameter)} of ${workloadText(server)}`,
    variable: `variable ${variableOf(requirement.parameter)} of ${workloadText(server)}`,
  }[reading.from];
  const isSet = reading.from !== 'params' || Boolean(params?.data?.[requirement.parameter]);
  const value = isSet ? `is ${quoted(reading.value)}` : 'is not set';
  return `${requirement.effect}: ${place} ${value}, it must be ${quoted(requirement.wanted)}`;
}

/** Whether the controller may set it. */
const isReplaceable = ({ requirement, reading }: OpenRequirement) =>
  reading.from === 'params' && requirement.mayReplace(reading.value);

const valuesOf = (open: readonly OpenRequirement[]) =>
  Object.fromEntries(open.map(({ requirement }) => [requirement.parameter, requirement.wanted]));

function ownerAdvice({ who, advice }: Owner, open: readonly OpenRequirement[]): string {
  return `${who} would put back what the controller changes, so ${advice(valuesOf(open))}`;
}

/** Who sets the parameters with kubectl gets the commands. */
function userAdvice(
  { namespace, params, workloads, isConsented }: ArgoCdState,
  open: readonly OpenRequirement[],
): string {
  const own = open.filter((one) => !isReplaceable(one));
  const kept = own.length > 0 && isConsented ? ['The controller does not replace a value of yours'] : [];
  const cautions = own.map(({ requirement, reading }) => requirement.caution(reading.value));
  const commands = commandsFor(namespace, params, valuesOf(isConsented ? own : open), workloads);
  const run = own.length > 0 ? 'Run' : "Set the chart's value hubArgoCD.configure to true, or run";
  return [...kept, ...cautions, `${run}: ${commands}`].join('. ');
}

/** One line for a shell that sets parameters of Argo CD and restarts the programs that read them. */
export function commandsFor(
  namespace: string,
  params: ConfigMap | undefined,
  values: Readonly<Record<string, string>>,
  workloads: readonly Workload[],
): string {
  const literals = Object.entries(values).map(([key, value]) => `--from-literal=${shellWord(`${key}=${value}`)}`);
  const set = params
    ? `kubectl -n ${namespace} patch configmap ${argoCdParamsName} --type merge -p ${shellWord(JSON.stringify({ data: values }))}`
    : `kubectl -n ${namespace} create configmap ${argoCdParamsName} ${literals.join(' ')}`;
  const readers = workloads
    .filter((one) => Object.keys(values).some((key) => takesFromParams(one, key as Parameter)))
    .map(workloadText)
    .sort();
  return `${set} && kubectl -n ${namespace} rollout restart ${readers.join(' ')}`;
}

/** A program with a setting of its own does not read the ConfigMap. */
function workloadAdvice({ namespace, server }: ArgoCdState, { requirement, reading }: OpenRequirement): string {
  const { parameter, wanted } = requirement;
  return reading.from === 'flag'
    ? `Remove flag ${flagOf(parameter)} from ${workloadText(server)}, or give it the value ${quoted(wanted)}`
    : `Run: kubectl -n ${namespace} set env ${workloadText(server)} ${shellWord(`${variableOf(parameter)}=${wanted}`)}`;
}
