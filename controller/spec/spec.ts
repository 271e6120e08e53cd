import { isIP } from 'node:net';
import { z } from 'zod';
import { isDnsLabel, withoutBrackets } from '../../lib/base/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import {
  type GitOpsCluster,
  isArgoCd,
  isSystemNamespace,
  listOf,
  type Parsed,
  problemsOf,
  quoted,
  systemNamespaceText,
} from '../hub/index.ts';
import { type ClusterLabels, clusterLabelsSchema } from './cluster-labels.ts';
import { type ClusterSettings, clusterSettingsSchema } from './cluster-settings.ts';
import { type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';

/** Settings of the agents, `spec.argoCDAgentAddon` of a GitOpsCluster. */
export interface AddOnSettings {
  readonly mode: 'managed' | 'autonomous';
  readonly agentNamespace: string | undefined;
  readonly operatorNamespace: string | undefined;
  readonly argoCD: 'Install' | 'Existing' | 'Operator';
  /**
   * Who makes the agent's key: the hub (`Generated`) or the cluster (`CSR`). Undefined: the cluster, unless it has a key of
   * the hub already.
   */
  readonly clientCertificate: 'Generated' | 'CSR' | undefined;
  /** The agent's rights for live access: `Full`, `None` or the name of a ClusterRole on the cluster. */
  readonly liveAccess: string;
  /** Whether Applications keep their namespaces on managed agents. The principal needs the same setting. */
  readonly destinationBasedMapping: boolean;
  /** Whether a generated ArgoCD resource names the image of the hub's principal; false: the operator chooses the image. */
  readonly syncsAgentImage: boolean;
  /** How clusters follow a new version. Undefined: the controller's setting. */
  readonly rolloutStrategy: RolloutStrategy | undefined;
  /** What becomes labels of the cluster Secrets. Undefined: the controller's setting. */
  readonly clusterLabels: ClusterLabels | undefined;
  /** Settings of Argo CD and the agent, over those of the controller. */
  readonly clusterSettings: ClusterSettings | undefined;
  /** The user's objects that replace the generated ArgoCD resource. */
  readonly payload: Parsed<readonly KubeObject[]> | undefined;
}

/** The specification of a GitOpsCluster. An invalid part does not affect the other parts. */
export interface FleetSpec {
  /** Name of the Placement. */
  readonly placement: Parsed<string>;
  /** The principal's address as the user set it. Empty parts are discovered. */
  readonly server: Parsed<{ readonly address: string; readonly port: string }>;
  readonly addOn: Parsed<AddOnSettings>;
}

/** Annotation on a GitOpsCluster: `true` leaves the agent's image to argocd-operator, as in argocd-pull-integration. */
export const disableImageSync = 'apps.open-cluster-management.io/disable-agent-image-sync';

const hostName = /^(\*\.)?[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*\.?$/;

const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.enum(values, { error: ({ input }) => `must be ${values.join(' or ')}, not ${quoted(input)}` });
const text = z.string({ error: ({ input }) => `must be a text, not ${quoted(input)}` });
const namespaceName = text
  .refine((value) => value === '' || isDnsLabel(value), {
    error: ({ input }) =>
      `must be a namespace's name (lower-case letters, digits, "-"; at most 63), not ${quoted(input)}`,
  })
  .refine((value) => !isSystemNamespace(value), {
    error: ({ input }) => `is ${quoted(input)}; it ${systemNamespaceText}`,
  });

const placementRef = z.object(
  {
    kind: z.literal('Placement', { error: ({ input }) => `must be "Placement", not ${quoted(input)}` }),
    name: text.min(1, { error: 'must name a Placement' }),
  },
  { error: 'must name a Placement' },
);

const server = z.object({
  principalServerAddress: text
    .transform(withoutBrackets)
    .refine((value) => value === '' || isIP(value) !== 0 || (hostName.test(value) && value.length <= 253), {
      error: ({ input }) => `must be a host name or an IP address without port, not ${quoted(input)}`,
    })
    .default(''),
  principalServerPort: text
    .refine((value) => value === '' || (/^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65535), {
      error: ({ input }) => `must be a port from 1 to 65535, not ${quoted(input)}`,
    })
    .default(''),
});

/** What is bound unless something is set. An autonomous cluster is its own master: users of the hub may only look. */
const defaultLiveAccess = { managed: 'Full', autonomous: 'view' } as const;

/** `Full` and `None` with other capitals are refused: they would name ClusterRoles by mistake. */
const liveAccess = text
  .refine(
    (value) =>
      ['', 'Full', 'None'].includes(value) ||
      (/^[A-Za-z0-9]([-A-Za-z0-9.:_]{0,200}[A-Za-z0-9])?$/.test(value) && !/^(full|none)$/i.test(value)),
    { error: ({ input }) => `must be Full, None or the name of a ClusterRole, not ${quoted(input)}` },
  )
  .default('');

const addOnFields = z.object({
  mode: z.preprocess((value) => (value === '' ? undefined : value), oneOf('managed', 'autonomous').default('managed')),
  agentNamespace: namespaceName.default(''),
  operatorNamespace: namespaceName.default(''),
  argoCD: oneOf('Install', 'Existing', 'Operator').optional(),
  argoCDCRManifestWork: z.unknown().optional(),
  clientCertificate: oneOf('Generated', 'CSR').optional(),
  liveAccess,
  destinationBasedMapping: z
    .boolean({ error: ({ input }) => `must be true or false, not ${quoted(input)}` })
    .default(true),
  rolloutStrategy: rolloutStrategySchema.optional(),
  clusterLabels: clusterLabelsSchema.optional(),
  clusterSettings: clusterSettingsSchema.optional(),
});

/** Settings that the chosen Argo CD takes from elsewhere are refused, not ignored. */
const addOn = addOnFields.superRefine(({ argoCD, argoCDCRManifestWork, clusterSettings = {} }, { addIssue }) => {
  const set = Object.keys(clusterSettings);
  const refuse = (names: readonly string[], message: string) => {
    if (names.length > 0) {
      addIssue({ code: 'custom', path: ['clusterSettings'], message });
    }
  };
  if (argoCD === 'Operator' || (argoCD === undefined && argoCDCRManifestWork !== undefined)) {
    refuse(set, 'is not for argoCD: Operator; put the settings into the ArgoCD of argoCDCRManifestWork');
  }
  if (argoCD === 'Existing') {
    const others = set.filter((name) => name !== 'agentParams');
    refuse(
      others,
      `has ${others.join(', ')}, but with argoCD: Existing the clusters' Argo CDs are not the controller's`,
    );
  }
});

/** As many manifests as the CRD accepts. */
const mostManifests = 4096;
/** Each agent of an ArgoCD gets rights for live access. */
const mostArgoCds = 100;
/** Programs that read JSON may refuse what is nested deeper than some hundreds. */
const deepestManifest = 100;

const filled = (most: number) =>
  text.min(1, { error: 'must not be empty' }).max(most, { error: `must have at most ${most} characters` });
const manifest = z
  .looseObject(
    {
      apiVersion: filled(317),
      kind: filled(253),
      metadata: z.looseObject(
        { name: filled(253), namespace: text.max(63, { error: 'must have at most 63 characters' }).optional() },
        { error: 'must have a name' },
      ),
    },
    { error: ({ input }) => `must be an object with apiVersion, kind and metadata, not ${quoted(input)}` },
  )
  .refine((value) => !isDeeper(value, deepestManifest), { error: `is nested more than ${deepestManifest} deep` });

const payload = z.object(
  {
    manifests: listOf(manifest, mostManifests, ({ input }) => `must be a list of manifests, not ${quoted(input)}`)
      .refine((list) => list.some(isArgoCd), { error: ({ input }) => noArgoCdText(input as readonly KubeObject[]) })
      .refine((list) => list.filter(isArgoCd).length <= mostArgoCds, {
        error: `must hold at most ${mostArgoCds} ArgoCDs`,
      }),
  },
  { error: 'must have a list of manifests' },
);

function noArgoCdText(manifests: readonly KubeObject[]): string {
  const found = manifests.map(({ apiVersion, kind, metadata }) => `${kind} ${metadata.name} of ${apiVersion}`);
  const instead = found.length > 0 ? ` of argoproj.io/v1beta1, not only ${found.join(', ')}` : '';
  return `must hold an ArgoCD${instead}`;
}

function isDeeper(value: unknown, most: number): boolean {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  return most === 0 || Object.values(value).some((part) => isDeeper(part, most - 1));
}

/** Reads the user's objects that replace the generated ArgoCD. At least one of them must be an ArgoCD. */
function parsePayload(input: unknown, subject: string): Parsed<readonly KubeObject[]> {
  const path = 'spec.argoCDAgentAddon.argoCDCRManifestWork';
  const result = payload.safeParse(input);
  if (!result.success) {
    return { problem: `${subject}: ${problemsOf(result.error, path)}` };
  }
  const manifests = result.data.manifests as readonly KubeObject[];
  const unplaced = manifests.findIndex((object) => isArgoCd(object) && !object.metadata.namespace);
  if (unplaced !== -1) {
    return {
      problem: `${subject}: ${path}.manifests.${unplaced}.metadata.namespace must say where the ArgoCD belongs`,
    };
  }
  return { value: manifests };
}

/** Parses a GitOpsCluster's specification. The CRD of argocd-pull-integration accepts values that cannot work. */
export function parseGitOpsCluster(object: GitOpsCluster): FleetSpec {
  const subject = `GitOpsCluster ${object.metadata.namespace}/${object.metadata.name}`;
  const spec = (object.spec ?? {}) as { placementRef?: unknown; argoCDAgentAddon?: unknown };
  const parse = <T, R>(schema: z.ZodType<T>, path: string, input: unknown, use: (value: T) => R): Parsed<R> => {
    const result = schema.safeParse(input);
    if (result.success) {
      return { value: use(result.data) };
    }
    return { problem: `${subject}: ${problemsOf(result.error, path)}` };
  };
  const settings = spec.argoCDAgentAddon ?? {};
  const payloadOf = ({ argoCD, argoCDCRManifestWork }: z.infer<typeof addOn>) => {
    if (argoCDCRManifestWork === undefined || argoCDCRManifestWork === null) {
      return undefined;
    }
    if (argoCD === undefined || argoCD === 'Operator') {
      return parsePayload(argoCDCRManifestWork, subject);
    }
    const problem = `spec.argoCDAgentAddon.argoCDCRManifestWork is for argoCD: Operator, not ${argoCD}; remove one of them`;
    return { problem: `${subject}: ${problem}` };
  };
  return {
    placement: parse(placementRef, 'spec.placementRef', spec.placementRef, ({ name }) => name),
    server: parse(server, 'spec.argoCDAgentAddon', settings, (value) => ({
      address: value.principalServerAddress,
      port: value.principalServerPort,
    })),
    addOn: parse(addOn, 'spec.argoCDAgentAddon', settings, (value) => ({
      mode: value.mode,
      agentNamespace: value.agentNamespace || undefined,
      operatorNamespace: value.operatorNamespace || undefined,
      // A payload implies argocd-operator.
      argoCD: value.argoCD ?? (value.argoCDCRManifestWork === undefined ? 'Install' : 'Operator'),
      // The user's ArgoCD names the Secret that the agent reads. That of argocd-pull-integration is the delivered one.
      clientCertificate:
        value.clientCertificate ?? (value.argoCDCRManifestWork === undefined ? undefined : 'Generated'),
      liveAccess: value.liveAccess || defaultLiveAccess[value.mode],
      destinationBasedMapping: value.destinationBasedMapping,
      syncsAgentImage: object.metadata.annotations?.[disableImageSync] !== 'true',
      rolloutStrategy: value.rolloutStrategy,
      clusterLabels: value.clusterLabels,
      clusterSettings: value.clusterSettings,
      payload: payloadOf(value),
    })),
  };
}
