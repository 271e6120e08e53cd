import { type Condition, type KubeObject, resourceType } from './types.ts';

/** A Secret. `data` is base64; `stringData` is write-only. */
export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  immutable?: boolean;
}

/** A ConfigMap. */
export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

/** A Namespace. */
export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

/** A ServiceAccount. */
export interface ServiceAccount extends KubeObject {
  secrets?: { name: string }[];
  imagePullSecrets?: { name: string }[];
  automountServiceAccountToken?: boolean;
}

/** One port of a Service. */
export interface ServicePort {
  name?: string;
  port: number;
  targetPort?: number | string;
  nodePort?: number;
  protocol?: string;
}

/** A Service. */
export interface Service extends KubeObject {
  spec?: {
    type?: string;
    selector?: Record<string, string>;
    ports?: ServicePort[];
    clusterIP?: string;
    clusterIPs?: string[];
    externalIPs?: string[];
    externalName?: string;
    publishNotReadyAddresses?: boolean;
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

/** The endpoints of a Service, in slices. */
export interface EndpointSlice extends KubeObject {
  addressType: string;
  endpoints?: { addresses: string[]; conditions?: { ready?: boolean }; targetRef?: { kind?: string; name?: string } }[];
  ports?: { name?: string; port?: number; protocol?: string }[];
}

/** A container of a pod, as far as this project reads it. */
export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: Record<string, unknown> }[];
  [field: string]: unknown;
}

/** A pod's specification, as far as this project reads it. */
export interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  serviceAccountName?: string;
  nodeName?: string;
  [field: string]: unknown;
}

/** A pod's labels, annotations and specification, inside a workload. */
export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec?: PodSpec;
}

/** A Pod. */
export interface Pod extends KubeObject {
  spec?: PodSpec;
  status?: {
    phase?: string;
    podIP?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    containerStatuses?: { name: string; ready?: boolean; restartCount?: number; [field: string]: unknown }[];
    [field: string]: unknown;
  };
}

/** A Deployment. */
export interface Deployment extends KubeObject {
  spec?: { replicas?: number; selector?: { matchLabels?: Record<string, string> }; template?: PodTemplate };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

/** A StatefulSet. */
export interface StatefulSet extends KubeObject {
  spec?: {
    replicas?: number;
    serviceName?: string;
    selector?: { matchLabels?: Record<string, string> };
    template?: PodTemplate;
  };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number; updatedReplicas?: number };
}

/** A Lease, used for leader election. */
export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds. */
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/** The object that an event refers to. */
export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  name?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
}

/** An Event of the group events.k8s.io. */
export interface KubeEvent extends KubeObject {
  eventTime: string;
  reportingController?: string;
  reportingInstance?: string;
  action?: string;
  reason?: string;
  regarding?: ObjectReference;
  note?: string;
  type?: string;
  series?: { count: number; lastObservedTime: string };
}

/** A CustomResourceDefinition, as far as this project reads it. */
export interface CustomResourceDefinition extends KubeObject {
  spec?: {
    group: string;
    names: { kind: string; plural: string; singular?: string; listKind?: string; shortNames?: string[] };
    scope: 'Namespaced' | 'Cluster';
    versions: { name: string; served: boolean; storage: boolean; schema?: unknown; subresources?: unknown }[];
    [field: string]: unknown;
  };
  status?: { conditions?: Condition[]; acceptedNames?: { kind: string; plural: string }; storedVersions?: string[] };
}

/** A CertificateSigningRequest. `request` and `certificate` are base64. */
export interface CertificateSigningRequest extends KubeObject {
  spec?: {
    request: string;
    signerName: string;
    usages?: string[];
    expirationSeconds?: number;
    username?: string;
    groups?: string[];
  };
  status?: {
    certificate?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string; lastUpdateTime?: string }[];
  };
}

/** A rule of a Role or ClusterRole. */
export interface PolicyRule {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
  verbs: string[];
}

/** A Role or ClusterRole. */
export interface Role extends KubeObject {
  rules?: PolicyRule[];
  aggregationRule?: unknown;
}

/** A RoleBinding or ClusterRoleBinding. */
export interface RoleBinding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string; apiGroup?: string }[];
}

/** A Node. */
export interface KubeNode extends KubeObject {
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

const core = { group: '', version: 'v1' };
const apps = { group: 'apps', version: 'v1' };
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' };

/** v1 Secret. */
export const secrets = resourceType<Secret>({ ...core, kind: 'Secret', plural: 'secrets', namespaced: true });
/** v1 ConfigMap. */
export const configMaps = resourceType<ConfigMap>({
  ...core,
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
});
/** v1 Namespace. */
export const namespaces = resourceType<Namespace>({
  ...core,
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
});
/** v1 Service. */
export const services = resourceType<Service>({ ...core, kind: 'Service', plural: 'services', namespaced: true });
/** v1 ServiceAccount. */
export const serviceAccounts = resourceType<ServiceAccount>({
  ...core,
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
});
/** v1 Pod. */
export const pods = resourceType<Pod>({ ...core, kind: 'Pod', plural: 'pods', namespaced: true });
/** v1 Node. */
export const nodes = resourceType<KubeNode>({ ...core, kind: 'Node', plural: 'nodes', namespaced: false });
/** apps/v1 Deployment. */
export const deployments = resourceType<Deployment>({
  ...apps,
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
});
/** apps/v1 StatefulSet. */
export const statefulSets = resourceType<StatefulSet>({
  ...apps,
  kind: 'StatefulSet',
  plural: 'statefulsets',
  namespaced: true,
});
/** coordination.k8s.io/v1 Lease. */
export const leases = resourceType<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
});
/** events.k8s.io/v1 Event. */
export const events = resourceType<KubeEvent>({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
});
/** discovery.k8s.io/v1 EndpointSlice. */
export const endpointSlices = resourceType<EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
});
/** apiextensions.k8s.io/v1 CustomResourceDefinition. */
export const crds = resourceType<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
});
/** certificates.k8s.io/v1 CertificateSigningRequest. */
export const certificateSigningRequests = resourceType<CertificateSigningRequest>({
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
});
/** rbac.authorization.k8s.io/v1 Role. */
export const roles = resourceType<Role>({ ...rbac, kind: 'Role', plural: 'roles', namespaced: true });
/** rbac.authorization.k8s.io/v1 ClusterRole. */
export const clusterRoles = resourceType<Role>({
  ...rbac,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
});
/** rbac.authorization.k8s.io/v1 RoleBinding. */
export const roleBindings = resourceType<RoleBinding>({
  ...rbac,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
});
/** rbac.authorization.k8s.io/v1 ClusterRoleBinding. */
export const clusterRoleBindings = resourceType<RoleBinding>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
});
