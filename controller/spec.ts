import { isIP } from 'node:net';
import { z } from 'zod';
import type { GitOpsCluster } from './resources.ts';

/** What the agents run with. */
export interface AddOnSettings {
  readonly mode: 'managed' | 'autonomous';
  readonly agentNamespace: string | undefined;
  readonly argoCD: 'Install' | 'Existing' | 'Operator';
  readonly clientCertificate: 'Generated' | 'CSR';
}

/** A part of the specification: its value, or what is wrong with it as a message that names object and field. */
export type Parsed<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly value?: never; readonly problem: string };

/** The specification of a GitOpsCluster. A bad part leaves the others usable. */
export interface FleetSpec {
  /** Name of the Placement. */
  readonly placement: Parsed<string>;
  /** What the user wrote of the principal's address; empty parts are discovered. */
  readonly server: Parsed<{ readonly address: string; readonly port: string }>;
  readonly addOn: Parsed<AddOnSettings>;
}

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

const addOn = z.object({
  mode: z.preprocess((value) => (value === '' ? undefined : value), oneOf('managed', 'autonomous').default('managed')),
  agentNamespace: namespaceName.default(''),
  operatorNamespace: namespaceName.default(''),
  argoCD: oneOf('Install', 'Existing', 'Operator').optional(),
  argoCDCRManifestWork: z.unknown().optional(),
  clientCertificate: oneOf('Generated', 'CSR').default('Generated'),
});

/** Reads a GitOpsCluster's specification; the CRD of the original lets much through that cannot work. */
export function parseGitOpsCluster(object: GitOpsCluster): FleetSpec {
  const who = `GitOpsCluster ${object.metadata.namespace}/${object.metadata.name}`;
  const spec = (object.spec ?? {}) as { placementRef?: unknown; argoCDAgentAddon?: unknown };
  const parse = <T, R>(schema: z.ZodType<T>, path: string, input: unknown, use: (value: T) => R): Parsed<R> => {
    const result = schema.safeParse(input);
    if (result.success) return { value: use(result.data) };
    const problems = result.error.issues.map((issue) => `${[path, ...issue.path].join('.')} ${issue.message}`);
    return { problem: `${who}: ${problems.join('; ')}` };
  };
  const settings = spec.argoCDAgentAddon ?? {};
  return {
    placement: parse(placementRef, 'spec.placementRef', spec.placementRef, ({ name }) => name),
    server: parse(server, 'spec.argoCDAgentAddon', settings, (value) => ({
      address: value.principalServerAddress,
      port: value.principalServerPort,
    })),
    addOn: parse(addOn, 'spec.argoCDAgentAddon', settings, (value) => ({
      mode: value.mode,
      agentNamespace: value.agentNamespace || undefined,
      // A resource for argocd-operator makes sense only with argocd-operator.
      argoCD: value.argoCD ?? (value.argoCDCRManifestWork === undefined ? 'Install' : 'Operator'),
      clientCertificate: value.clientCertificate,
    })),
  };
}
