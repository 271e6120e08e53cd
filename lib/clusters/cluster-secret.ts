import type { AgentMode } from '../auth/index.ts';
import { wellKnown } from '../base/index.ts';
import type { Secret } from '../kube/index.ts';
import { decodeSecret, parseKeyPair, parseTrust, type TextFields, type TlsKeyPair } from '../ops/index.ts';

/** Marks the cluster Secrets that a principal made itself, as in argocd-agent. */
export const selfRegisteredLabel = 'argocd-agent.argoproj-labs.io/self-registered-cluster';

/** Argo CD's client certificate for the resource proxy. It is the same for all agents; the token names the agent. */
export interface ProxyIdentity extends TlsKeyPair {
  /** Authorities that the proxy's certificate must come from, PEM. */
  readonly ca: string;
}

/**
 * The identity in `tls.crt`, `tls.key` and `ca.crt`, all of them required. As with argocd-agent, whose tool leaves `ca.crt` out, the
 * authority of a second Secret does instead.
 * @param authority name of that Secret, whose fields are among the others with it and a slash in front
 * @throws Error that explains the fault
 */
export function parseProxyIdentity(fields: TextFields, authority: string): ProxyIdentity {
  const others = fields['ca.crt'] === undefined ? [`${authority}/ca.crt`, `${authority}/tls.crt`] : [];
  return { ...parseKeyPair(fields), ca: parseTrust(fields, ['ca.crt', ...others]) };
}

/** Name of the cluster Secret that is made for an agent: that of argocd-agent. */
export function agentClusterSecretName(agent: string): string {
  return `cluster-${agent}`;
}

/** The agent of a cluster Secret that a principal made and no other program has taken over; undefined for other Secrets. */
export function selfRegisteredAgent({ metadata: { name, labels = {} } }: Secret): string | undefined {
  const agent = labels[wellKnown.agentNameLabel] ?? '';
  const isOwn =
    labels[selfRegisteredLabel] === 'true' &&
    labels[wellKnown.secretTypeLabel] === 'cluster' &&
    // The controller sets this label on a Secret that it takes over.
    labels[wellKnown.managedByLabel] === undefined &&
    name === agentClusterSecretName(agent);
  return isOwn ? agent : undefined;
}

/** The desired content of a cluster Secret. */
export interface ClusterEntry {
  readonly agent: string;
  /** host:port at which Argo CD reaches the resource proxy. */
  readonly address: string;
  readonly identity: ProxyIdentity;
  /** The bearer token that names the agent to the resource proxy. */
  readonly token: string;
}

/** The cluster Secret of an agent that registers itself, in the form that argocd-agent's principal makes it. */
export function newClusterSecret(namespace: string, entry: ClusterEntry): Secret {
  return clusterSecret(namespace, entry, { labels: { [selfRegisteredLabel]: 'true' } });
}

/** The cluster Secret of an agent that an operator enrolls, in the form that `argocd-agentctl agent create` makes it. */
export function enrolledClusterSecret(
  namespace: string,
  entry: Omit<ClusterEntry, 'token'>,
  own: {
    readonly mode: AgentMode;
    /** Labels by which ApplicationSets select the cluster. */
    readonly labels: Readonly<Record<string, string>>;
    readonly managedBy: string;
  },
): Secret {
  const { mode, managedBy } = own;
  const labels = { ...own.labels, [wellKnown.managedByLabel]: managedBy };
  return clusterSecret(namespace, entry, { labels, annotations: { [wellKnown.agentModeAnnotation]: mode } });
}

type Connection = Omit<ClusterEntry, 'token'> & Partial<Pick<ClusterEntry, 'token'>>;

/** The cluster Secret of an agent, with labels and annotations beyond those that all of them have. */
export function clusterSecret(
  namespace: string,
  entry: Connection,
  own: { readonly labels: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> },
): Secret {
  const { agent } = entry;
  return {
    metadata: {
      name: agentClusterSecretName(agent),
      namespace,
      labels: { [wellKnown.secretTypeLabel]: 'cluster', [wellKnown.agentNameLabel]: agent, ...own.labels },
      // The application controller of the hub leaves the cluster alone.
      annotations: {
        'managed-by': 'argocd-agent',
        [wellKnown.skipReconcileAnnotation]: 'true',
        ...own.annotations,
      },
    },
    data: { name: encode(agent), server: encode(serverOf(entry)), config: encode(JSON.stringify(configOf({}, entry))) },
  };
}

/** Argo CD's ClusterConfig in a cluster Secret; empty when it cannot be read. */
export function clusterConfigIn(secret: Secret): Readonly<Record<string, unknown>> {
  return parsed(decodeSecret(secret).config ?? '');
}

/** The client certificate in a cluster Secret and the authorities beside it; empty texts for what it lacks. */
export function identityIn(secret: Secret): { certificate: string; key: string; ca: string } {
  const { tlsClientConfig } = parsed(decodeSecret(secret).config ?? '');
  const fields = isObject(tlsClientConfig) ? tlsClientConfig : {};
  const text = (field: string) => Buffer.from(String(fields[field] ?? ''), 'base64').toString('utf8');
  return { certificate: text('certData'), key: text('keyData'), ca: text('caData') };
}

/** The changed fields of a cluster Secret that gets another client certificate. What else it holds stays. */
export function withIdentity(secret: Secret, identity: ProxyIdentity): Record<string, string> {
  const config = configOf(parsed(decodeSecret(secret).config ?? ''), { identity });
  return { config: encode(JSON.stringify(config)) };
}

/** The fields of a cluster Secret that differ from what they should be; undefined when none does. What else it holds stays. */
export function outdatedFields(secret: Secret, entry: ClusterEntry): Record<string, string> | undefined {
  const { server = '', config = '' } = decodeSecret(secret);
  const wanted = { server: serverOf(entry), config: JSON.stringify(configOf(parsed(config), entry)) };
  const changed: Record<string, string> = {};
  if (server !== wanted.server) {
    changed.server = encode(wanted.server);
  }
  if (config !== wanted.config) {
    changed.config = encode(wanted.config);
  }
  return Object.keys(changed).length === 0 ? undefined : changed;
}

/** The bearer token in a cluster Secret; empty without one. */
export function tokenOf(secret: Secret): string {
  const { bearerToken } = parsed(decodeSecret(secret).config ?? '');
  return typeof bearerToken === 'string' ? bearerToken : '';
}

function serverOf({ agent, address }: Connection): string {
  return `https://${address}?agentName=${agent}`;
}

/** Argo CD's ClusterConfig, with what others have added to it. */
function configOf(
  known: Readonly<Record<string, unknown>>,
  { identity, token }: Pick<Connection, 'identity' | 'token'>,
): object {
  const { tlsClientConfig } = known;
  return {
    ...known,
    ...(token === undefined ? {} : { bearerToken: token }),
    tlsClientConfig: {
      ...(isObject(tlsClientConfig) ? tlsClientConfig : {}),
      insecure: false,
      certData: encode(identity.cert),
      keyData: encode(identity.key),
      caData: encode(identity.ca),
    },
  };
}

/** An invalid config counts as empty and is replaced. */
function parsed(config: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(config);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}
