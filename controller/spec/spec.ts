import { isIP } from 'node:net';
import { z } from 'zod';
import type { KubeObject } from '../../lib/kube/index.ts';
import { type GitOpsCluster, isArgoCd, type Parsed } from '../hub/index.ts';
import { type RolloutStrategy, rolloutStrategySchema } from './rollout-strategy.ts';

/** Settings of the agents, `spec.argoCDAgentAddon` of a GitOpsCluster. */
export interface AddOnSettings {
  readonly mode: 'managed' | 'autonomous';
  readonly agentNamespace: string | undefined;
  readonly operatorNamespace: string | undefined;
  readonly argoCD: 'Install' | 'Existing' | 'Operator';
  readonly clientCertificate: 'Generated' | 'CSR';
  /** The agent's rights for live access: `Full`, `None` or the name of a ClusterRole on the cluster. */
  readonly liveAccess: string;
  /** Whether Applications keep their namespaces on managed agents. The principal needs the same setting. */
  readonly destinationBasedMapping: boolean;
  /** Whether a generated ArgoCD resource names the image of the hub's principal; false: the operator chooses the image. */
  readonly syncsAgentImage: boolean;
  /** How clusters follow a new version. Undefined: the controller's setting. */
  readonly rolloutStrategy: RolloutStrategy | undefined;
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
const disableImageSync = 'apps.open-cluster-management.io/disable-agent-image-sync';

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const hostName = /^(\*\.)?[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*\.?$/;

const quoted = ({ input }: { input?: unknown }) => (input === undefined ? 'nothing' : JSON.stringify(input));
const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.enum(values, { error: (issue) => `must be ${values.join(' or ')}, not ${quoted(issue)}` });
const text = z.string({ error: (issue) => `must be a text, not ${quoted(issue)}` });
const namespaceName = text.refine((value) => value === '' || (label.test(value) && value.length <= 63), {
  error: (issue) => `must be a namespace's name (lower-case letters, digits, "-"; at most 63), not ${quoted(issue)}`,
});

const placementRef = z.object(
  {
    kind: z.literal('Placement', { error: (issue) => `must be "Placement", not ${quoted(issue)}` }),
    name: text.min(1, { error: 'must name a Placement' }),
  },
  { error: 'must name a Placement' },
);

const server = z.object({
  principalServerAddress: text
    .refine((value) => value === '' || isIP(value) !== 0 || (hostName.test(value) && value.length <= 253), {
      error: (issue) => `must be a host name or an IP address without port, not ${quoted(issue)}`,
    })
    .default(''),
  principalServerPort: text
    .refine((value) => value === '' || (/^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65535), {
      error: (issue) => `must be a port from 1 to 65535, not ${quoted(issue)}`,
    })
    .default(''),
});

/** `Full` and `None` with other capitals are refused: they would name ClusterRoles by mistake. */
const liveAccess = text
  .refine(
    (value) =>
      ['', 'Full', 'None'].includes(value) ||
      (/^[A-Za-z0-9]([-A-Za-z0-9.:_]{0,200}[A-Za-z0-9])?$/.test(value) && !/^(full|none)$/i.test(value)),
    { error: (issue) => `must be Full, None or the name of a ClusterRole, not ${quoted(issue)}` },
  )
  .transform((value) => value || 'Full')
  .default('Full');

const addOn = z.object({
  mode: z.preprocess((value) => (value === '' ? undefined : value), oneOf('managed', 'autonomous').default('managed')),
  agentNamespace: namespaceName.default(''),
  operatorNamespace: namespaceName.default(''),
  argoCD: oneOf('Install', 'Existing', 'Operator').optional(),
  argoCDCRManifestWork: z.unknown().optional(),
  clientCertificate: oneOf('Generated', 'CSR').default('Generated'),
  liveAccess,
  destinationBasedMapping: z.boolean({ error: (issue) => `must be true or false, not ${quoted(issue)}` }).default(true),
  rolloutStrategy: rolloutStrategySchema.optional(),
});

const payload = z.object(
  {
    manifests: z
      .array(
        z.looseObject(
          {
            apiVersion: text.min(1, { error: 'must not be empty' }),
            kind: text.min(1, { error: 'must not be empty' }),
            metadata: z.looseObject(
              { name: text.min(1, { error: 'must not be empty' }), namespace: text.optional() },
              { error: 'must have a name' },
            ),
          },
          { error: (issue) => `must be an object with apiVersion, kind and metadata, not ${quoted(issue)}` },
        ),
        { error: (issue) => `must be a list of manifests, not ${quoted(issue)}` },
      )
      .min(1, { error: 'must hold an ArgoCD' }),
  },
  { error: 'must have a list of manifests' },
);

/** Reads the user's objects that replace the generated ArgoCD. At least one of them must be an ArgoCD. */
function parsePayload(input: unknown, subject: string): Parsed<readonly KubeObject[]> {
  const path = 'spec.argoCDAgentAddon.argoCDCRManifestWork';
  const result = payload.safeParse(input);
  if (!result.success) {
    const problems = result.error.issues.map((issue) => `${[path, ...issue.path].join('.')} ${issue.message}`);
    return { problem: `${subject}: ${problems.join('; ')}` };
  }
  const manifests = result.data.manifests as readonly KubeObject[];
  if (!manifests.some(isArgoCd)) {
    const found = manifests.map(({ apiVersion, kind, metadata }) => `${kind} ${metadata.name} of ${apiVersion}`);
    const problem = `${path}.manifests must hold an ArgoCD of argoproj.io/v1beta1, not only ${found.join(', ')}`;
    return { problem: `${subject}: ${problem}` };
  }
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
    const problems = result.error.issues.map((issue) => `${[path, ...issue.path].join('.')} ${issue.message}`);
    return { problem: `${subject}: ${problems.join('; ')}` };
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
      clientCertificate: value.clientCertificate,
      liveAccess: value.liveAccess,
      destinationBasedMapping: value.destinationBasedMapping,
      syncsAgentImage: object.metadata.annotations?.[disableImageSync] !== 'true',
      rolloutStrategy: value.rolloutStrategy,
      payload: payloadOf(value),
    })),
  };
}
