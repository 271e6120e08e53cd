import { z } from 'zod';
import {
  type AddOnDeploymentConfig,
  isSystemNamespace,
  listOf,
  type ManagedCluster,
  mapOf,
  type Parsed,
  problemsOf,
  quoted,
  type ResourceRequirements,
  systemNamespaceText,
  type Toleration,
  textOf,
} from '../hub/index.ts';
import { type PodVariables, parsePodVariables } from './pod-variables.ts';

/** An image prefix and its replacement. */
export interface Registry {
  /** The prefix to replace; empty: every image. */
  readonly source: string;
  readonly mirror: string;
}

/** Resources for matching containers. */
export interface ContainerResources {
  /** `<plural kind>:<workload>:<container>` as in OCM; each part may contain `*`. */
  readonly containerID: string;
  readonly resources: ResourceRequirements;
}

/** What all pods on a managed cluster have. */
export type PodSettings = PodVariables & {
  /** Whether the cluster gives each namespace user ids of its own, and refuses others: pods then name none. */
  readonly assignsIds: boolean;
};

/** Validated settings for the workloads on a managed cluster. */
export interface AddOnConfig {
  /** argocd-pull-integration's variable `ARGOCD_NAMESPACE`, else the install namespace. Undefined without either. */
  readonly agentNamespace: string | undefined;
  /** argocd-pull-integration's variable `ARGOCD_OPERATOR_NAMESPACE`. */
  readonly operatorNamespace: string | undefined;
  /** The variable `METRICS_NAMESPACES`: namespaces whose pods may read the agent's metrics and health. Undefined without it. */
  readonly metricsNamespaces: readonly string[] | undefined;
  /** Whether mode `Operator` delivers argocd-operator; false when the cluster has it already. */
  readonly installsOperator: boolean;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Undefined: the workloads keep their own tolerations. */
  readonly tolerations: readonly Toleration[] | undefined;
  readonly registries: readonly Registry[];
  readonly proxy: {
    readonly httpProxy: string;
    readonly httpsProxy: string;
    readonly noProxy: readonly string[];
    /** PEM certificates, or empty. */
    readonly caBundle: string;
  };
  readonly containers: readonly ContainerResources[];
  readonly pods: PodSettings;
}

/** The default install namespace in the CRD of AddOnDeploymentConfigs. */
const defaultInstallNamespace = 'open-cluster-management-agent-addon';

/** Characters of the longest kind, workload (253) and container (63), with their colons. */
const longestContainerId = 'statefulsets'.length + 253 + 63 + 2;

/** Bounds the time that a configuration of others can take. Far fewer containers are delivered. */
const mostRequirements = 100;
/** Most entries of the other lists and maps, for the same reason. */
const mostEntries = 1_000;

/** Characters of a label's value. Kubernetes takes no more. */
const longestLabel = 63;
/** Characters of a label's key, an address or the prefix of an image. */
const longestName = 1_024;
/** Characters of `noProxy`, which is in the environment of each container twice. */
const longestNoProxy = 16 * 1024;

/**
 * The Secret that OCM's klusterlet operator copies into the namespaces that have the label
 * `addon.open-cluster-management.io/namespace`.
 */
const copiedPullSecret = 'open-cluster-management-image-pull-credentials';

/** Annotation on a ManagedCluster: registries for all its add-ons, and the Secret that they need, as JSON. */
const registriesAnnotation = 'open-cluster-management.io/image-registries';

const namespaceName = z
  .string()
  .regex(/^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$/, { error: "must be a namespace's name" })
  .default('');
const quantity = z.preprocess(
  (value) => (typeof value === 'number' ? String(value) : value),
  textOf(longestLabel).regex(/^(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/, {
    error: ({ input }) => `must be a quantity like 100m or 256Mi, not ${quoted(input)}`,
  }),
);
const proxy = textOf(longestName)
  .refine((value) => value === '' || URL.canParse(value) || URL.canParse(`http://${value}`), {
    error: ({ input }) => `must be an address like http://proxy.example.com:3128, not ${quoted(input)}`,
  })
  .default('');
const registries = listOf(
  z.object({
    source: textOf(longestName).default(''),
    mirror: textOf(longestName).min(1, { error: 'must name a registry' }),
  }),
  mostEntries,
);
// Fields that Kubernetes does not know are left out, like those that an API server prunes: they may hold anything.
const toleration = z.object({
  key: textOf(longestName).optional(),
  value: textOf(longestLabel).optional(),
  operator: z.enum(['', 'Exists', 'Equal', 'Lt', 'Gt'], { error: 'must be Exists or Equal' }).optional(),
  effect: z
    .enum(['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'], {
      error: 'must be NoSchedule, PreferNoSchedule or NoExecute',
    })
    .optional(),
  tolerationSeconds: z.number().int().optional(),
});
const amounts = mapOf(quantity, mostEntries).optional();
const claims = listOf(
  z.object({ name: textOf(longestName), request: textOf(longestName).optional() }),
  mostRequirements,
).optional();
const flag = /^(true|false)?$/;

const schema = z.object({
  agentInstallNamespace: namespaceName,
  customizedVariables: listOf(z.object({ name: z.string(), value: z.string().default('') }), mostEntries).default([]),
  nodePlacement: z
    .object({
      nodeSelector: mapOf(textOf(longestLabel), mostEntries).default({}),
      tolerations: listOf(toleration, mostEntries).optional(),
    })
    .prefault({}),
  registries: registries.optional(),
  proxyConfig: z
    .object({
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: textOf(longestNoProxy).default(''),
      caBundle: z
        .string()
        .transform((value) => Buffer.from(value, 'base64').toString())
        .refine((value) => value === '' || value.includes('-----BEGIN CERTIFICATE-----'), {
          error: 'must be certificates in PEM, encoded in base64',
        })
        .default(''),
    })
    .prefault({}),
  resourceRequirements: listOf(
    z.object({
      containerID: textOf(longestContainerId).regex(
        /^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):[a-z0-9.*-]+:[a-z0-9*-]+$/,
        {
          error: ({ input }) =>
            `must be kind:workload:container such as deployments:argocd-repo-server:*, not ${quoted(input)}`,
        },
      ),
      resources: z.object({ requests: amounts, limits: amounts, claims }),
    }),
    mostRequirements,
  ).default([]),
});

/**
 * Parses the settings for a cluster's workloads by OCM's rules: registries of the AddOnDeploymentConfig replace those of
 * the ManagedCluster's annotation. Variables unknown to argocd-pull-integration belong to other add-ons and are ignored.
 */
export function parseAddOnConfig(
  config: AddOnDeploymentConfig | undefined,
  cluster?: ManagedCluster | undefined,
): Parsed<AddOnConfig> {
  const result = schema.safeParse(config?.spec ?? {});
  if (!result.success) {
    return { problem: `${nameOf(config)}: ${problemsOf(result.error, 'spec')}` };
  }
  const { customizedVariables, nodePlacement, proxyConfig, resourceRequirements, ...spec } = result.data;
  const variable = (name: string) => customizedVariables.findLast((one) => one.name === name)?.value ?? '';
  for (const name of ['ARGOCD_NAMESPACE', 'ARGOCD_OPERATOR_NAMESPACE']) {
    if (namespaceName.safeParse(variable(name)).success) {
      continue;
    }
    const value = quoted(variable(name));
    return { problem: `${nameOf(config)}: spec.customizedVariables[${name}] must be a namespace's name, not ${value}` };
  }
  const metricsNamespaces = variable('METRICS_NAMESPACES')
    .split(/[,\s]+/)
    .filter(Boolean);
  const wrong = metricsNamespaces.find((name) => !namespaceName.safeParse(name).success);
  if (wrong !== undefined) {
    const problem = `spec.customizedVariables[METRICS_NAMESPACES] must be names of namespaces, not ${quoted(wrong)}`;
    return { problem: `${nameOf(config)}: ${problem}` };
  }
  const pods = parsePodVariables(variable);
  if (pods.problem !== undefined) {
    return { problem: `${nameOf(config)}: spec.customizedVariables${pods.problem}` };
  }
  const installs = variable('ARGOCD_OPERATOR_INSTALL');
  if (!flag.test(installs)) {
    const problem = `spec.customizedVariables[ARGOCD_OPERATOR_INSTALL] must be true or false, not ${quoted(installs)}`;
    return { problem: `${nameOf(config)}: ${problem}` };
  }
  const installNamespace = spec.agentInstallNamespace === defaultInstallNamespace ? '' : spec.agentInstallNamespace;
  const agentNamespace = variable('ARGOCD_NAMESPACE') || installNamespace;
  const operatorNamespace = variable('ARGOCD_OPERATOR_NAMESPACE');
  const fieldOfAgent = variable('ARGOCD_NAMESPACE') ? 'customizedVariables[ARGOCD_NAMESPACE]' : 'agentInstallNamespace';
  const fields = {
    [fieldOfAgent]: agentNamespace,
    'customizedVariables[ARGOCD_OPERATOR_NAMESPACE]': operatorNamespace,
  };
  const [system] = Object.entries(fields).filter(([, namespace]) => isSystemNamespace(namespace));
  if (system !== undefined) {
    const [field, namespace] = system;
    return { problem: `${nameOf(config)}: spec.${field} is ${quoted(namespace)}; it ${systemNamespaceText}` };
  }
  const annotated = registriesOf(cluster);
  if (annotated.problem !== undefined && spec.registries === undefined) {
    return annotated;
  }
  const copied = annotated.value?.pullSecret ? [copiedPullSecret] : [];
  return {
    value: {
      agentNamespace: agentNamespace || undefined,
      operatorNamespace: operatorNamespace || undefined,
      metricsNamespaces: metricsNamespaces.length === 0 ? undefined : metricsNamespaces,
      installsOperator: installs !== 'false',
      nodeSelector: nodePlacement.nodeSelector,
      tolerations: nodePlacement.tolerations as Toleration[] | undefined,
      registries: spec.registries ?? annotated.value?.registries ?? [],
      proxy: {
        ...proxyConfig,
        noProxy: proxyConfig.noProxy
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean),
      },
      containers: resourceRequirements as ContainerResources[],
      pods: {
        ...pods.value,
        imagePullSecrets: [...new Set([...pods.value.imagePullSecrets, ...copied])],
        assignsIds: isOpenShift(cluster),
      },
    },
  };
}

/** The settings without any configuration. */
export const noConfig: AddOnConfig = parseAddOnConfig(undefined).value as AddOnConfig;

const annotation = z.object({
  registries: registries.default([]),
  /** Names a Secret of the hub, which the klusterlet's operator copies as {@link copiedPullSecret}. */
  pullSecret: textOf(longestName).default(''),
});

function registriesOf(cluster: ManagedCluster | undefined): Parsed<z.output<typeof annotation>> {
  const text = cluster?.metadata.annotations?.[registriesAnnotation];
  if (!text) {
    return { value: { registries: [], pullSecret: '' } };
  }
  const where = `ManagedCluster ${cluster?.metadata.name}: annotation ${registriesAnnotation}`;
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { problem: `${where} is no JSON: ${(error as Error).message}` };
  }
  const result = annotation.safeParse(content);
  return result.success ? { value: result.data } : { problem: `${where}: ${problemsOf(result.error)}` };
}

function nameOf(config: AddOnDeploymentConfig | undefined): string {
  return `AddOnDeploymentConfig ${config?.metadata.namespace ?? ''}/${config?.metadata.name ?? ''}`;
}

/** Products that are OpenShift, as Red Hat's klusterlet add-on names them in its cluster claim. */
const openShifts: ReadonlySet<string> = new Set([
  'OpenShift',
  'OpenShiftDedicated',
  'ROSA',
  'ARO',
  'ROKS',
  'MicroShift',
]);

/** Whether the claims of a cluster say that it is OpenShift. A cluster writes them itself, and only its own pods depend on it. */
function isOpenShift(cluster: ManagedCluster | undefined): boolean {
  const claims = cluster?.status?.clusterClaims ?? [];
  return claims.some(
    ({ name, value = '' }) =>
      name === 'version.openshift.io' || (name === 'product.open-cluster-management.io' && openShifts.has(value)),
  );
}
