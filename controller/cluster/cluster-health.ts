import { type Condition, isConditionTrue } from '../../lib/kube/index.ts';
import type { AddOnCondition, AddOnReasons, ManagedCluster, ManifestWork } from '../hub/index.ts';

interface Workload {
  readonly name: string;
  readonly ready: number | undefined;
  readonly replicas: number | undefined;
}

/** Name of the agent's Deployment. Its pod is ready while the agent is connected. */
const agentDeployment = 'argocd-agent-agent';
/** Reason of the condition Available when nothing is missing but the agent's connection. */
export const agentNotConnected = 'AgentNotConnected';

/**
 * The condition Available by OCM's conventions, computed from the status that the work agent reports.
 * @param connection the condition AgentConnected
 */
export function availability(
  works: readonly ManifestWork[],
  cluster: ManagedCluster | undefined,
  before: Condition | undefined,
  connection: AddOnCondition,
): AddOnCondition {
  const type = 'Available';
  if (cluster && !isConditionTrue(cluster.status?.conditions, 'ManagedClusterConditionAvailable')) {
    // OCM itself sets Unknown in this case. Its reason is kept, so that the two do not overwrite each other.
    if (before?.status === 'Unknown') {
      const reason = before.reason as AddOnReasons['Available'];
      return { type, status: 'Unknown', reason, message: before.message };
    }
    const message = `ManagedCluster ${cluster.metadata.name} does not report`;
    return { type, status: 'Unknown', reason: 'ManagedClusterNotAvailable', message };
  }
  if (works.length === 0) {
    return { type, status: 'Unknown', reason: 'WorkNotFound', message: 'no ManifestWork yet' };
  }
  const refused = works.map(refusal).find((text) => text !== undefined);
  if (refused !== undefined) {
    return { type, status: 'False', reason: 'WorkNotApplied', message: refused };
  }
  const absent = works.map(absence).find((text) => text !== undefined);
  if (absent !== undefined) {
    return { type, status: 'False', reason: 'ResourceNotAvailable', message: absent };
  }
  const pending = works.find((work) => !isConditionTrue(work.status?.conditions, 'Applied'));
  if (pending) {
    const message = `ManifestWork ${pending.metadata.name} is not applied yet`;
    return { type, status: 'Unknown', reason: 'WorkNotApplied', message };
  }
  const workloads = works.flatMap(workloadsOf);
  const silent = workloads.filter(({ ready, replicas }) => ready === undefined && replicas !== 0);
  if (silent.length > 0 && silent.length === workloads.length) {
    return { type, status: 'Unknown', reason: 'NoProbeResult', message: 'no status of a workload has come back yet' };
  }
  const down = workloads.filter(({ ready, replicas }) => replicas !== 0 && (ready ?? 0) < 1).map(({ name }) => name);
  if (down.join() === agentDeployment && connection.status !== 'True') {
    const message = `${connection.message}; not ready: ${agentDeployment}`;
    return { type, status: 'False', reason: agentNotConnected, message };
  }
  if (down.length > 0) {
    return { type, status: 'False', reason: 'ProbeUnavailable', message: `not ready: ${down.join(', ')}` };
  }
  return { type, status: 'True', reason: 'ProbeAvailable', message: 'argocd-agent-addon add-on is available.' };
}

/** Type of the condition that tells whether a cluster that is to request its agent's certificate has got one. */
export const certificateIssuedType = 'ClientCertificateIssued';

/**
 * The condition ClientCertificateIssued. Whether OCM's registration agent of a cluster can request certificates for
 * add-ons is not known on the hub before it does. So the condition is False until then, and says what to do.
 * @param issued the certificate that the cluster requested last
 * @param connection the condition AgentConnected
 */
export function certificateIssued(
  issued: { readonly until: string } | undefined,
  { isDelivered }: { readonly isDelivered: boolean },
  connection: AddOnCondition,
  now: Date,
): AddOnCondition {
  const type = certificateIssuedType;
  const isValid = issued !== undefined && Date.parse(issued.until) > now.getTime();
  if (isValid) {
    return {
      type,
      status: 'True',
      reason: 'Issued',
      message: `the cluster requested a certificate, valid until ${issued.until}`,
    };
  }
  // The record of a certificate can be lost with the add-on. But no other certificate lets the agent connect.
  const hasConnected = issued === undefined ? connection.reason !== 'NeverConnected' : connection.status === 'True';
  if (!isDelivered && hasConnected) {
    const message = 'the agent has connected with a certificate that the cluster requested';
    return { type, status: 'True', reason: 'InUse', message };
  }
  const advice = `see the log of klusterlet-registration-agent on the cluster. If it cannot request certificates for add-ons, set spec.argoCDAgentAddon.clientCertificate: Generated, and the hub delivers a key`;
  if (issued !== undefined) {
    const message = `the certificate that the cluster requested expired at ${issued.until}, and it has not requested another one: ${advice}`;
    return { type, status: 'False', reason: 'Expired', message };
  }
  const meanwhile = isDelivered ? '. Until then the agent uses the key that the hub delivered' : '';
  const message = `OCM's registration agent of the cluster has not requested the certificate of the agent: ${advice}${meanwhile}`;
  return { type, status: 'False', reason: 'NotRequested', message };
}

/** The condition Progressing: whether all works are applied. */
export function progress(works: readonly ManifestWork[], problem: string | undefined): AddOnCondition {
  const type = 'Progressing';
  if (problem !== undefined) {
    return { type, status: 'False', reason: 'Failed', message: problem };
  }
  if (works.length === 0) {
    return { type, status: 'True', reason: 'Progressing', message: 'progressing... no addon works' };
  }
  const behind = works.find(
    ({ metadata, status }) =>
      !['Applied', 'Available'].every((condition) =>
        status?.conditions?.some(
          (found) =>
            found.type === condition &&
            found.status === 'True' &&
            (found.observedGeneration ?? 0) >= (metadata.generation ?? 0),
        ),
      ),
  );
  if (behind) {
    const text = refusal(behind) ?? `${behind.metadata.name} is not ready`;
    return { type, status: 'True', reason: 'Progressing', message: `progressing... work is not ready: ${text}` };
  }
  return { type, status: 'False', reason: 'Completed', message: 'completed with no errors.' };
}

/**
 * The condition ManifestApplied: whether the works were written, and applied by the cluster. The reason distinguishes a
 * first application from an update.
 */
export function manifestApplied(
  works: readonly ManifestWork[],
  problem: string | undefined,
  before: Condition | undefined,
): AddOnCondition {
  const type = 'ManifestApplied';
  if (problem !== undefined) {
    return { type, status: 'False', reason: 'ManifestWorkApplyFailed', message: problem };
  }
  const refused = works.map(refusal).find((text) => text !== undefined);
  if (refused !== undefined) {
    return { type, status: 'False', reason: 'AddonManifestAppliedFailed', message: refused };
  }
  const isApplied = works.length > 0 && works.every((work) => isConditionTrue(work.status?.conditions, 'Applied'));
  if (!isApplied) {
    const reason = before?.status === 'True' || before?.reason === 'Updating' ? 'Updating' : 'Progressing';
    return { type, status: 'Unknown', reason, message: 'the works are being applied' };
  }
  return {
    type,
    status: 'True',
    reason: 'AddonManifestApplied',
    message: 'manifests of addon are applied successfully',
  };
}

/** The reason why the cluster refused a work or one of its manifests; undefined when it did not. */
function refusal(work: ManifestWork): string | undefined {
  const applied = work.status?.conditions?.find(({ type }) => type === 'Applied');
  if (applied?.status !== 'False') {
    return undefined;
  }
  const manifests = work.status?.resourceStatus?.manifests ?? [];
  for (const { resourceMeta, conditions } of manifests) {
    const found = conditions.find(({ type, status }) => type === 'Applied' && status === 'False');
    if (found) {
      const { kind, namespace, name } = resourceMeta;
      const what = `${kind} ${namespace ? `${namespace}/` : ''}${name}`;
      return `ManifestWork ${work.metadata.name}: ${what}: ${found.message}${advice(found.message)}`;
    }
  }
  return `ManifestWork ${work.metadata.name}: ${applied.message}`;
}

/** An object that the cluster lacks although its work is applied, as a message; undefined when there is none. */
function absence(work: ManifestWork): string | undefined {
  const found = work.status?.resourceStatus?.manifests?.find(({ conditions }) =>
    conditions.some(({ type, status }) => type === 'Available' && status === 'False'),
  );
  if (found === undefined) {
    return undefined;
  }
  const { kind, namespace, name } = found.resourceMeta;
  return `ManifestWork ${work.metadata.name}: the cluster does not have ${kind} ${namespace ? `${namespace}/` : ''}${name}`;
}

/** Kinds whose status shows whether the delivered workloads run. argocd-operator writes the status of an ArgoCD. */
const workloadKinds = new Set(['Deployment', 'StatefulSet', 'ArgoCD']);

/**
 * Instructions for an administrator of the cluster when a StatefulSet cannot be changed, or when the work agent lacks a right. OCM aggregates ClusterRoles with
 * this label into the rights of its work agent.
 */
function advice(message: string): string {
  if (/updates to statefulset spec .* are forbidden/.test(message)) {
    return '; delete the StatefulSet on the cluster with kubectl delete --cascade=orphan: its pods stay, and it is made again';
  }
  const found = /cannot (\S+) resource "([^"]+)" in API group "([^"]*)"/.exec(message);
  if (found === null) {
    return '';
  }
  const [, verb = '', resource = '', group = ''] = found;
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `; grant it on the cluster: a ClusterRole that allows to ${verb} ${kind}, labelled open-cluster-management.io/aggregate-to-work: "true"`;
}

function workloadsOf(work: ManifestWork): Workload[] {
  const watched = new Set(
    (work.spec.manifestConfigs ?? [])
      .filter(({ feedbackRules }) => feedbackRules !== undefined)
      .map(({ resourceIdentifier: { name } }) => name),
  );
  const reported = work.status?.resourceStatus?.manifests ?? [];
  return work.spec.workload.manifests
    .filter(({ kind, metadata }) => workloadKinds.has(kind ?? '') && watched.has(metadata.name))
    .filter((manifest) => (manifest as { spec?: { replicas?: number } }).spec?.replicas !== 0)
    .map(({ kind, metadata }) => {
      const values = reported.find(({ resourceMeta: m }) => m.kind === kind && m.name === metadata.name)?.statusFeedback
        ?.values;
      const number = (name: string) => values?.find((value) => value.name === name)?.fieldValue.integer;
      if (kind === 'ArgoCD') {
        const phase = values?.find((value) => value.name === 'Phase')?.fieldValue.string;
        const ready = phase === undefined ? undefined : Number(phase === 'Available');
        return { name: metadata.name, ready, replicas: undefined };
      }
      return { name: metadata.name, ready: number('ReadyReplicas'), replicas: number('Replicas') };
    });
}
