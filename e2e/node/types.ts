import { type KubeObject, resourceType } from '../../lib/kube/index.ts';

/** A probe of a container, as in the core API. Durations are seconds. */
export interface Probe {
  httpGet?: { path?: string; port: number | string; host?: string; scheme?: string; httpHeaders?: NameValue[] };
  tcpSocket?: { port: number | string; host?: string };
  exec?: { command?: string[] };
  grpc?: { port: number; service?: string };
  initialDelaySeconds?: number;
  periodSeconds?: number;
  timeoutSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
}

interface NameValue {
  name: string;
  value: string;
}

/** Names a key of a Secret or ConfigMap in the pod's namespace. */
export interface KeySelector {
  name: string;
  key: string;
  optional?: boolean;
}

/** An environment variable of a container. */
export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    fieldRef?: { fieldPath: string };
    resourceFieldRef?: { resource: string; containerName?: string };
    secretKeyRef?: KeySelector;
    configMapKeyRef?: KeySelector;
  };
}

/** Where a Secret or ConfigMap is read whole as environment. */
export interface EnvFrom {
  prefix?: string;
  secretRef?: { name: string; optional?: boolean };
  configMapRef?: { name: string; optional?: boolean };
}

/** Who a process runs as, and what it may do. */
export interface SecurityContext {
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  readOnlyRootFilesystem?: boolean;
  supplementalGroups?: number[];
  fsGroup?: number;
  allowPrivilegeEscalation?: boolean;
  capabilities?: { add?: string[]; drop?: string[] };
}

/** Where a volume appears in a container. */
export interface VolumeMount {
  name: string;
  mountPath: string;
  subPath?: string;
  readOnly?: boolean;
}

/** A container of a pod, with what the node carries out of it. */
export interface KubeletContainer {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env?: EnvVar[];
  envFrom?: EnvFrom[];
  ports?: { name?: string; containerPort: number; protocol?: string }[];
  volumeMounts?: VolumeMount[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: { preStop?: { exec?: { command?: string[] }; sleep?: { seconds: number } } };
  securityContext?: SecurityContext;
  restartPolicy?: string;
  terminationMessagePath?: string;
}

/** One key of a Secret or ConfigMap and the file it becomes. */
export interface KeyToPath {
  key: string;
  path: string;
  mode?: number;
}

/** A file of the downward API. */
export interface DownwardFile {
  path: string;
  fieldRef?: { fieldPath: string };
  resourceFieldRef?: { resource: string; containerName?: string };
  mode?: number;
}

/** One source of a projected volume. */
export interface Projection {
  secret?: { name: string; items?: KeyToPath[]; optional?: boolean };
  configMap?: { name: string; items?: KeyToPath[]; optional?: boolean };
  downwardAPI?: { items?: DownwardFile[] };
  serviceAccountToken?: { path: string; audience?: string; expirationSeconds?: number };
}

/** A volume of a pod. Kinds that are not named here are refused, as a kubelet without their driver would. */
export interface Volume {
  name: string;
  secret?: { secretName: string; items?: KeyToPath[]; defaultMode?: number; optional?: boolean };
  configMap?: { name: string; items?: KeyToPath[]; defaultMode?: number; optional?: boolean };
  emptyDir?: { medium?: string; sizeLimit?: string };
  downwardAPI?: { items?: DownwardFile[]; defaultMode?: number };
  projected?: { sources?: Projection[]; defaultMode?: number };
  [kind: string]: unknown;
}

/** A pod's specification, with what the node carries out of it. */
export interface KubeletPodSpec {
  containers: KubeletContainer[];
  initContainers?: KubeletContainer[];
  volumes?: Volume[];
  nodeName?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: { key?: string; operator?: string; value?: string; effect?: string }[];
  affinity?: {
    nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: NodeSelectorTerm[] } };
  };
  schedulerName?: string;
  schedulingGates?: unknown[];
  serviceAccountName?: string;
  securityContext?: SecurityContext;
  restartPolicy?: string;
  hostname?: string;
  subdomain?: string;
  hostAliases?: { ip: string; hostnames?: string[] }[];
  hostNetwork?: boolean;
  enableServiceLinks?: boolean;
  terminationGracePeriodSeconds?: number;
}

/** One alternative of a node affinity. */
export interface NodeSelectorTerm {
  matchExpressions?: NodeRequirement[];
  matchFields?: NodeRequirement[];
}

/** A requirement on one label or field of a node. */
export interface NodeRequirement {
  key: string;
  operator: string;
  values?: string[];
}

/** A condition of a pod. */
export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string | null;
  lastProbeTime?: string | null;
}

/** What a container is doing, as its status says it: exactly one of the three is set. */
export interface ContainerState {
  waiting?: { reason: string; message?: string };
  running?: { startedAt: string };
  terminated?: {
    exitCode: number;
    signal?: number;
    reason: string;
    message?: string;
    startedAt: string;
    finishedAt: string;
    containerID?: string;
  };
}

/** The status of one container. */
export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  containerID?: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  state: ContainerState;
  lastState: ContainerState;
}

/** The status of a pod. */
export interface PodStatus {
  phase?: string;
  reason?: string;
  message?: string;
  hostIP?: string;
  hostIPs?: { ip: string }[];
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  qosClass?: string;
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
}

/** A Pod, with what the node carries out of it. */
export interface KubeletPod extends KubeObject {
  spec: KubeletPodSpec;
  status?: PodStatus;
}

/** v1 Pod, typed as the node needs it. */
export const kubeletPods = resourceType<KubeletPod>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
});
