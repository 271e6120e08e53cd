import { z } from 'zod';
import type { AddOnDeploymentConfig, ManagedCluster, Parsed, ResourceRequirements, Toleration } from '../hub/index.ts';

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

/** Validated settings for the workloads on a managed cluster. */
export interface AddOnConfig {
  /** argocd-pull-integration's variable `ARGOCD_NAMESPACE`, else the install namespace. Undefined without either. */
  readonly agentNamespace: string | undefined;
  /** argocd-pull-integration's variable `ARGOCD_OPERATOR_NAMESPACE`. */
  readonly operatorNamespace: string | undefined;
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
}

/** The default install namespace in the CRD of AddOnDeploymentConfigs. */
const defaultInstallNamespace = 'open-cluster-management-agent-addon';

/** Annotation on a ManagedCluster: registries for all its add-ons, as JSON. */
const registriesAnnotation = 'open-cluster-management.io/image-registries';

const namespaceName = z
  .string()
  .regex(/^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$/, { error: "must be a namespace's name" })
  .default('');
const quantity = z.preprocess(
  (value) => (typeof value === 'number' ? String(value) : value),
  z.string().regex(/^(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/, {
    error: ({ input }) => `must be a quantity like 100m or 256Mi, not ${JSON.stringify(input)}`,
  }),
);
const proxy = z
  .string()
  .refine((value) => value === '' || URL.canParse(value) || URL.canParse(`http://${value}`), {
    error: ({ input }) => `must be an address like http://proxy.example.com:3128, not ${JSON.stringify(input)}`,
  })
  .default('');
const registries = z.array(
  z.object({ source: z.string().default(''), mirror: z.string().min(1, { error: 'must name a registry' }) }),
);
const toleration = z.looseObject({
  operator: z.enum(['', 'Exists', 'Equal', 'Lt', 'Gt'], { error: 'must be Exists or Equal' }).optional(),
  effect: z
    .enum(['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'], {
      error: 'must be NoSchedule, PreferNoSchedule or NoExecute',
    })
    .optional(),
});
const amounts = z.record(z.string(), quantity).optional();
const flag = /^(true|false)?$/;

const schema = z.object({
  agentInstallNamespace: namespaceName,
  customizedVariables: z.array(z.object({ name: z.string(), value: z.string().default('') })).default([]),
  nodePlacement: z
    .object({
      nodeSelector: z.record(z.string(), z.string()).default({}),
      tolerations: z.array(toleration).optional(),
    })
    .prefault({}),
  registries: registries.optional(),
  proxyConfig: z
    .object({
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: z.string().default(''),
      caBundle: z
        .string()
        .transform((value) => Buffer.from(value, 'base64').toString())
        .refine((value) => value === '' || value.includes('-----BEGIN CERTIFICATE-----'), {
          error: 'must be certificates in PEM, encoded in base64',
        })
        .default(''),
    })
    .prefault({}),
  resourceRequirements: z
    .array(
      z.object({
        containerID: z
          .string()
          .regex(/^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):[^:]+:[^:]+$/, {
            error: ({ input }) =>
              `must be kind:workload:container such as deployments:argocd-repo-server:*, not ${JSON.stringify(input)}`,
          }),
        resources: z.looseObject({ requests: amounts, limits: amounts }),
      }),
    )
    .default([]),
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
    return { problem: `${nameOf(config)}: ${secretText(result.error, 'spec')}` };
  }
  const { customizedVariables, nodePlacement, proxyConfig, resourceRequirements, ...spec } = result.data;
  const variable = (name: string) => customizedVariables.findLast((one) => one.name === name)?.value ?? '';
  for (const name of ['ARGOCD_NAMESPACE', 'ARGOCD_OPERATOR_NAMESPACE']) {
    if (namespaceName.safeParse(variable(name)).success) {
      continue;
    }
    const value = JSON.stringify(variable(name));
    return { problem: `${nameOf(config)}: spec.customizedVariables[${name}] must be a namespace's name, not ${value}` };
  }
  const installs = variable('ARGOCD_OPERATOR_INSTALL');
  if (!flag.test(installs)) {
    const problem = `spec.customizedVariables[ARGOCD_OPERATOR_INSTALL] must be true or false, not ${JSON.stringify(installs)}`;
    return { problem: `${nameOf(config)}: ${problem}` };
  }
  const own = spec.registries ? { value: spec.registries } : registriesOf(cluster);
  if (own.problem !== undefined) {
    return own;
  }
  const installNamespace = spec.agentInstallNamespace === defaultInstallNamespace ? '' : spec.agentInstallNamespace;
  return {
    value: {
      agentNamespace: variable('ARGOCD_NAMESPACE') || installNamespace || undefined,
      operatorNamespace: variable('ARGOCD_OPERATOR_NAMESPACE') || undefined,
      installsOperator: installs !== 'false',
      nodeSelector: nodePlacement.nodeSelector,
      tolerations: nodePlacement.tolerations as Toleration[] | undefined,
      registries: own.value,
      proxy: {
        ...proxyConfig,
        noProxy: proxyConfig.noProxy
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean),
      },
      containers: resourceRequirements as ContainerResources[],
    },
  };
}

/** The settings without any configuration. */
export const noConfig: AddOnConfig = parseAddOnConfig(undefined).value as AddOnConfig;

function registriesOf(cluster: ManagedCluster | undefined): Parsed<readonly Registry[]> {
  const text = cluster?.metadata.annotations?.[registriesAnnotation];
  if (!text) {
    return { value: [] };
  }
  const where = `ManagedCluster ${cluster?.metadata.name}: annotation ${registriesAnnotation}`;
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { problem: `${where} is no JSON: ${(error as Error).message}` };
  }
  const result = z.object({ registries: registries.default([]) }).safeParse(content);
  return result.success ? { value: result.data.registries } : { problem: `${where}: ${secretText(result.error)}` };
}

function nameOf(config: AddOnDeploymentConfig | undefined): string {
  return `AddOnDeploymentConfig ${config?.metadata.namespace ?? ''}/${config?.metadata.name ?? ''}`;
}

function secretText(error: z.ZodError, path?: string): string {
  return error.issues
    .map((issue) => `${[...(path ? [path] : []), ...issue.path].join('.')} ${issue.message}`)
    .join('; ');
}
