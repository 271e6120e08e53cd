import { splitHostPort } from '../lib/base/index.ts';
import {
  between,
  boolFlag,
  commonFlags,
  durationFlag,
  eventSinkFlags,
  type FlagValues,
  httpUrl,
  intFlag,
  listFlag,
  notNegative,
  oneOf,
  positive,
  stringFlag,
} from '../lib/ops/index.ts';
import { spireFlags } from '../lib/spiffe/index.ts';
import { fleetPageFlags } from './fleet-page/flags.ts';

const program = { prefix: 'ARGOCD_PRINCIPAL' } as const;
const env = (name: string) => ({ env: `${program.prefix}_${name}` });

/** The flags of `argocd-agent principal`: names, environment variables and defaults of the original. */
export const principalFlags = {
  ...commonFlags({
    ...program,
    metricsPort: 8000,
    healthzPort: 8003,
    healthzUsage: 'port of the health server',
    tlsMinVersion: 'tls1.3',
    allowedNamespacesUsage: 'namespaces whose Applications are handled: shell globs or /regular expressions/',
    webSocketUsage: 'serve WebSocket and HTTP/1.1 on the same port, for agents behind proxies without HTTP/2',
    mappingUsage:
      "route Applications to agents by spec.destination (name, or the URL of a cluster) instead of the Application's namespace",
  }),
  'listen-host': stringFlag({ usage: 'address the gRPC server listens on; empty for all', ...env('LISTEN_HOST') }),
  'listen-port': intFlag({
    usage: 'port the gRPC server listens on; 0 for any free one',
    default: 8443,
    ...env('LISTEN_PORT'),
    check: between(0, 65535),
  }),
  namespace: stringFlag({
    usage: "Argo CD's namespace: configuration Secrets, AppProjects and cluster Secrets are read from it",
    short: 'n',
    ...env('NAMESPACE'),
  }),
  'namespace-create-enable': boolFlag({
    usage: "create the namespace of an autonomous agent's Applications when it does not exist",
    ...env('NAMESPACE_CREATE_ENABLE'),
  }),
  'namespace-create-pattern': stringFlag({
    usage: 'create only namespaces whose name contains a match of this regular expression; empty for all',
    ...env('NAMESPACE_CREATE_PATTERN'),
  }),
  'namespace-create-labels': listFlag({
    usage: 'labels for created namespaces, as key=value',
    ...env('NAMESPACE_CREATE_LABELS'),
  }),
  'autonomous-project-groups': boolFlag({
    usage: "give the groups in the roles of autonomous agents' AppProjects these roles on the hub, too",
    ...env('AUTONOMOUS_PROJECT_GROUPS'),
  }),
  'share-default-project': boolFlag({
    usage:
      "with namespace-based mapping, give Argo CD's untouched AppProject default to managed agents, too, although it admits none of their namespaces",
    ...env('SHARE_DEFAULT_PROJECT'),
  }),
  'share-repositories': boolFlag({
    usage:
      'give repository Secrets without a project, which otherwise stay on the hub, to the agents whose Applications use the repository',
    ...env('SHARE_REPOSITORIES'),
  }),
  'application-events': boolFlag({
    usage:
      'write Events about the Applications of agents when the sync status, the health or an operation that their agent reports changes',
    ...env('APPLICATION_EVENTS'),
  }),
  'tls-secret-name': stringFlag({
    usage: "Secret with the gRPC server's certificate (tls.crt, tls.key)",
    default: 'argocd-agent-principal-tls',
    ...env('TLS_SECRET_NAME'),
  }),
  'tls-cert': stringFlag({
    usage: "file with the gRPC server's certificate, instead of the Secret",
    ...env('TLS_SERVER_CERT_PATH'),
  }),
  'tls-key': stringFlag({
    usage: "file with the gRPC server's key, instead of the Secret",
    ...env('TLS_SERVER_KEY_PATH'),
  }),
  'insecure-tls-generate': boolFlag({
    usage:
      'serve with a self-signed certificate that is generated at every start; agents cannot verify it; for tests only',
    ...env('TLS_SERVER_ALLOW_GENERATE'),
  }),
  'insecure-plaintext': boolFlag({
    usage: 'serve without TLS, for a service mesh that adds it',
    ...env('INSECURE_PLAINTEXT'),
  }),
  'tls-ca-secret-name': stringFlag({
    usage: "Secret with the CA that verifies the agents' certificates (ca.crt and/or tls.crt)",
    default: 'argocd-agent-ca',
    ...env('TLS_SERVER_ROOT_CA_SECRET_NAME'),
  }),
  'root-ca-path': stringFlag({
    usage: "file with the CA that verifies the agents' certificates, instead of the Secret",
    ...env('TLS_SERVER_ROOT_CA_PATH'),
  }),
  ...spireFlags(program.prefix),
  'require-client-certs': boolFlag({
    usage: 'require a client certificate from every agent; implied by mtls authentication',
    ...env('TLS_CLIENT_CERT_REQUIRE'),
  }),
  'client-cert-subject-match': boolFlag({
    usage: "an agent's name must equal the CN of its client certificate",
    ...env('TLS_CLIENT_CERT_MATCH_SUBJECT'),
  }),
  'jwt-secret-name': stringFlag({
    usage: 'Secret with the key that signs tokens (jwt.key)',
    default: 'argocd-agent-jwt',
    ...env('JWT_SECRET_NAME'),
  }),
  'jwt-key': stringFlag({
    usage: 'file with the key that signs tokens (PKCS#8 PEM), instead of the Secret',
    ...env('JWT_KEY_PATH'),
  }),
  'insecure-jwt-generate': boolFlag({
    usage: 'sign tokens with a key that is generated at every start, which makes older tokens invalid',
    ...env('JWT_ALLOW_GENERATE'),
  }),
  auth: stringFlag({
    usage:
      'how agents authenticate: mtls:subject:<regex>, mtls:uri:<regex>, userpass:<file>, header:<name>:<regex> or spiffe-jwt:<regex>; by default as --spire-auth-method says, with the regex spiffe://[^/]+/(.+)',
    ...env('AUTH'),
  }),
  'redis-server-address': stringFlag({
    usage: "address of Argo CD's Redis: the UI reads the agents' connection states there; upstream of the Redis proxy",
    default: 'argocd-redis:6379',
    ...env('REDIS_SERVER_ADDRESS'),
  }),
  'redis-compression-type': stringFlag({
    usage: 'compression that Argo CD uses for its data in Redis: gzip or none',
    default: 'gzip',
    ...env('REDIS_COMPRESSION_TYPE'),
    check: oneOf('gzip', 'none'),
  }),
  'redis-ca-path': stringFlag({
    usage: "file with the CA that verifies Redis's certificate, instead of the Secret",
    ...env('REDIS_CA_PATH'),
  }),
  'redis-ca-secret-name': stringFlag({
    usage: "Secret with the CA that verifies Redis's certificate (ca.crt)",
    default: 'argocd-redis-tls',
    ...env('REDIS_CA_SECRET_NAME'),
  }),
  'keepalive-min-interval': durationFlag({
    usage:
      "minimum interval of an agent's keep-alive pings; more frequent pings end the connection; 0: only floods of pings do",
    ...env('KEEP_ALIVE_MIN_INTERVAL'),
    check: notNegative,
  }),
  'agent-disconnect-grace-period': durationFlag({
    usage: 'how long an agent may be without a connection before its Applications show that; 0: they never do',
    default: 5 * 60_000,
    ...env('AGENT_DISCONNECT_GRACE_PERIOD'),
    check: notNegative,
  }),
  'event-processors': intFlag({
    usage: 'number of resources of one agent that are processed at the same time',
    default: 10,
    ...env('EVENT_PROCESSORS'),
    check: positive,
  }),
  'agent-max-objects': intFlag({
    usage: 'maximum number of Applications and AppProjects that are mirrored from one autonomous agent; 0: no limit',
    default: 5_000,
    ...env('AGENT_MAX_OBJECTS'),
    check: notNegative,
  }),
  'agent-max-bytes': intFlag({
    usage:
      'maximum size of all that one agent has stored on the hub (mirrors, or statuses of its Applications), in bytes; 0: no limit',
    default: 128 * 1024 * 1024,
    ...env('AGENT_MAX_BYTES'),
    check: notNegative,
  }),
  'agent-max-object-bytes': intFlag({
    usage: 'maximum size of one mirror, or of one status, in bytes; 0: no limit',
    default: 4 * 1024 * 1024,
    ...env('AGENT_MAX_OBJECT_BYTES'),
    check: notNegative,
  }),
  'agent-max-writes': intFlag({
    usage:
      "writes per second that one agent may cause on the hub's API server, on average; above it the agent is slowed down; 0: no limit",
    default: 50,
    ...env('AGENT_MAX_WRITES'),
    check: notNegative,
  }),
  'agent-max-written-bytes': intFlag({
    usage:
      "bytes per second that one agent may write to the hub's API server, on average; above it the agent is slowed down; 0: no limit",
    default: 2 * 1024 * 1024,
    ...env('AGENT_MAX_WRITTEN_BYTES'),
    check: notNegative,
  }),
  'enable-replicas': boolFlag({
    usage:
      'share the agents with other principals in this namespace: each agent is served by the one that it connects to; needs rights on Leases',
    ...env('ENABLE_REPLICAS'),
  }),
  'replica-listen': stringFlag({
    usage:
      'address and port that other replicas reach this one at, for requests about its agents; with --enable-replicas',
    default: '0.0.0.0:8447',
    ...env('REPLICA_LISTEN'),
    check: (value) =>
      splitHostPort(value) === undefined ? `must be host:port, not ${JSON.stringify(value)}` : undefined,
  }),
  'replica-address': stringFlag({
    usage:
      'host:port that other replicas are told to reach this one at; empty: $POD_IP and the port of --replica-listen',
    ...env('REPLICA_ADDRESS'),
    check: (value) =>
      value === '' || splitHostPort(value) !== undefined
        ? undefined
        : `must be host:port, not ${JSON.stringify(value)}`,
  }),
  'replica-renew-interval': durationFlag({
    usage: 'how often a replica shows that it lives; with --enable-replicas',
    default: 1_000,
    ...env('REPLICA_RENEW_INTERVAL'),
    check: positive,
  }),
  'replica-renew-deadline': durationFlag({
    usage: 'a replica that could not show that it lives for this long writes nothing until it can',
    default: 3_000,
    ...env('REPLICA_RENEW_DEADLINE'),
    check: positive,
  }),
  'replica-lease-duration': durationFlag({
    usage:
      'a replica that has shown no sign of life for this long is deposed, and others serve its agents; whole seconds',
    default: 5_000,
    ...env('REPLICA_LEASE_DURATION'),
    check: positive,
  }),
  'audit-log-path': stringFlag({
    usage: 'file for a record of every request of live access, as lines of JSON; - for standard output; empty for none',
    ...env('AUDIT_LOG_PATH'),
  }),
  'audit-log-maxsize': intFlag({
    usage: 'size in MiB at which the audit file is renamed to end in .1 and a new one begins; 0: it grows',
    default: 100,
    ...env('AUDIT_LOG_MAXSIZE'),
    check: notNegative,
  }),
  'audit-webhook-url': stringFlag({
    usage: 'URL that audit records are sent to, as JSON {"items": [...]}; empty for none',
    ...env('AUDIT_WEBHOOK_URL'),
    check: httpUrl,
  }),
  'audit-webhook-token-path': stringFlag({
    usage: 'file with the bearer token for --audit-webhook-url',
    ...env('AUDIT_WEBHOOK_TOKEN_PATH'),
  }),
  ...eventSinkFlags(env),
  'events-out-of-step-after': durationFlag({
    usage: 'an agent is reported when its oldest change has waited for longer, and an Application when its change has',
    default: 10 * 60_000,
    ...env('EVENTS_OUT_OF_STEP_AFTER'),
    check: positive,
  }),
  'application-metrics': boolFlag({
    usage:
      "serve argocd_app_info and the phase of the last operation of every Application of the hub, which Argo CD's own metrics do not have there",
    ...env('APPLICATION_METRICS'),
  }),
  'application-metrics-labels': listFlag({
    usage: 'labels of Applications that argocd_app_labels shows; with --application-metrics',
    ...env('APPLICATION_METRICS_LABELS'),
  }),
  'enable-resource-proxy': boolFlag({
    usage: "serve the API of the agents' clusters to Argo CD (resource proxy)",
    default: true,
    ...env('ENABLE_RESOURCE_PROXY'),
  }),
  'resource-proxy-listen': stringFlag({
    usage: 'address and port that the resource proxy listens on',
    default: '0.0.0.0:9090',
    ...env('RESOURCE_PROXY_LISTEN'),
    check: (value) =>
      splitHostPort(value) === undefined ? `must be host:port, not ${JSON.stringify(value)}` : undefined,
  }),
  'resource-proxy-address': stringFlag({
    usage:
      'host:port at which Argo CD reaches the resource proxy; written to the cluster Secrets of self-registered agents',
    default: 'argocd-agent-resource-proxy:9090',
    ...env('RESOURCE_PROXY_ADDRESS'),
  }),
  'enable-enrolment': boolFlag({
    usage:
      'give certificates to agents with a token of "argocd-agent enroll", and renew them; needs the private key in the Secret of --tls-ca-secret-name',
    ...env('ENABLE_ENROLMENT'),
  }),
  'enable-self-cluster-registration': boolFlag({
    usage:
      'create the cluster Secret of an agent that logs in and has none; needs --enable-resource-proxy and --self-registration-client-cert-secret',
    ...env('ENABLE_SELF_CLUSTER_REGISTRATION'),
  }),
  'self-registration-client-cert-secret': stringFlag({
    usage:
      'Secret with a client certificate for the resource proxy, for these cluster Secrets (tls.crt, tls.key, and ca.crt unless it is that of --tls-ca-secret-name)',
    ...env('SELF_REGISTRATION_CLIENT_CERT_SECRET'),
  }),
  'resource-proxy-secret-name': stringFlag({
    usage: "Secret with the resource proxy's certificate and key",
    default: 'argocd-agent-resource-proxy-tls',
    ...env('RESOURCE_PROXY_SECRET_NAME'),
  }),
  'resource-proxy-cert-path': stringFlag({
    usage: "file with the resource proxy's certificate; used only if key and CA are files too",
    ...env('RESOURCE_PROXY_TLS_CERT_PATH'),
  }),
  'resource-proxy-key-path': stringFlag({
    usage: "file with the resource proxy's key; used only if certificate and CA are files too",
    ...env('RESOURCE_PROXY_TLS_KEY_PATH'),
  }),
  'resource-proxy-ca-secret-name': stringFlag({
    usage: "Secret with the CA that verifies the resource proxy's clients (ca.crt and/or tls.crt)",
    default: 'argocd-agent-ca',
    ...env('RESOURCE_PROXY_CA_SECRET_NAME'),
  }),
  'resource-proxy-ca-path': stringFlag({
    usage:
      "file with the CA that verifies the resource proxy's clients; used only if certificate and key are files too",
    ...env('RESOURCE_PROXY_TLS_CA_PATH'),
  }),
  'resource-proxy-max-answer-size': intFlag({
    usage:
      'maximum size in bytes of an answer of an agent through the resource proxy that is neither a watch nor a log; a larger one is broken off',
    default: 64 * 1024 * 1024,
    ...env('RESOURCE_PROXY_MAX_ANSWER_SIZE'),
    check: positive,
  }),
  'terminal-idle-timeout': durationFlag({
    usage: 'close a web terminal after this time without data in either direction; 0 for never',
    default: 30 * 60_000,
    ...env('TERMINAL_IDLE_TIMEOUT'),
    check: notNegative,
  }),
  'disable-redis-proxy': boolFlag({
    usage: "do not serve the Redis proxy, from which Argo CD reads the resource trees of the agents' clusters",
    ...env('DISABLE_REDIS_PROXY'),
  }),
  'redis-proxy-listen': stringFlag({
    usage: 'address and port that the Redis proxy listens on',
    default: '0.0.0.0:6379',
    ...env('REDIS_PROXY_LISTEN'),
    check: (value) =>
      splitHostPort(value) === undefined ? `must be host:port, not ${JSON.stringify(value)}` : undefined,
  }),
  'redis-proxy-server-tls-cert': stringFlag({
    usage: "file with the Redis proxy's certificate, instead of the Secret; with --redis-tls-enabled",
    ...env('REDIS_PROXY_SERVER_TLS_CERT_PATH'),
  }),
  'redis-proxy-server-tls-key': stringFlag({
    usage: "file with the Redis proxy's key, instead of the Secret; with --redis-tls-enabled",
    ...env('REDIS_PROXY_SERVER_TLS_KEY_PATH'),
  }),
  'redis-proxy-server-tls-secret-name': stringFlag({
    usage: "Secret with the Redis proxy's certificate and key; with --redis-tls-enabled",
    default: 'argocd-redis-proxy-tls',
    ...env('REDIS_PROXY_SERVER_TLS_SECRET_NAME'),
  }),
  'ha-enabled': boolFlag({
    usage: 'make this principal one of a pair on two hubs, of which one is active and the other one follows',
    ...env('HA_ENABLED'),
  }),
  'ha-preferred-role': stringFlag({
    usage:
      'role after a start: primary (active, unless the Lease of --ha-lease-kubeconfig says that the other one is) or replica (follow --ha-peer-address until promoted)',
    default: 'primary',
    ...env('HA_PREFERRED_ROLE'),
    check: oneOf('primary', 'replica'),
  }),
  'ha-peer-address': stringFlag({
    usage: "host:port of the other principal's gRPC server, which this one follows while it is not active",
    ...env('HA_PEER_ADDRESS'),
    check: (value) =>
      value !== '' && splitHostPort(value) === undefined
        ? `must be host:port, not ${JSON.stringify(value)}`
        : undefined,
  }),
  'ha-failover-timeout': durationFlag({
    usage: 'accepted for compatibility; no principal promotes itself',
    default: 30_000,
    ...env('HA_FAILOVER_TIMEOUT'),
    check: notNegative,
  }),
  'ha-admin-port': intFlag({
    usage:
      'port at which "argocd-agentctl ha" asks for the state, promotes and demotes, on the address of --listen-host; 0 for 8405',
    ...env('HA_ADMIN_PORT'),
    check: (port) => (port > 65535 ? 'must be at most 65535' : undefined),
  }),
  'ha-admin-auth': stringFlag({
    usage:
      'whose client certificate may do so: mtls:subject:<regex> or mtls:uri:<regex>, of which the expression must match. Empty: nobody. Agents never may',
    ...env('HA_ADMIN_AUTH'),
  }),
  'ha-admin-tls-cert': stringFlag({
    usage:
      'file with the certificate of --ha-admin-port; with --ha-admin-tls-key and --ha-admin-ca. Empty: all three as for agents',
    ...env('HA_ADMIN_TLS_CERT'),
  }),
  'ha-admin-tls-key': stringFlag({
    usage: 'file with the key of --ha-admin-tls-cert',
    ...env('HA_ADMIN_TLS_KEY'),
  }),
  'ha-admin-ca': stringFlag({
    usage: 'file with the CA that clients of --ha-admin-port must come from',
    ...env('HA_ADMIN_CA'),
  }),
  'ha-allowed-replication-clients': listFlag({
    usage:
      'names of the certificates that may follow this principal; without any, only a server certificate for the host of --ha-peer-address may. Agents never may',
    ...env('HA_ALLOWED_REPLICATION_CLIENTS'),
  }),
  'ha-replication-initial-ack-timeout': durationFlag({
    usage: 'how long a principal that follows may take for the first snapshot; 0 for 5 minutes',
    ...env('HA_REPLICATION_INITIAL_ACK_TIMEOUT'),
    check: notNegative,
  }),
  'ha-lease-kubeconfig': stringFlag({
    usage:
      'kubeconfig file of a third cluster, in which a Lease decides which principal is active. Without it, both can be active at the same time',
    ...env('HA_LEASE_KUBECONFIG'),
  }),
  'ha-lease-kubecontext': stringFlag({
    usage: 'context of this file, if not its current one',
    ...env('HA_LEASE_KUBECONTEXT'),
  }),
  'ha-lease-namespace': stringFlag({
    usage: 'namespace of the Lease; empty for that of the kubeconfig context, or default',
    ...env('HA_LEASE_NAMESPACE'),
  }),
  'ha-lease-name': stringFlag({
    usage: 'name of the Lease, the same for both principals',
    default: 'argocd-agent-active-hub',
    ...env('HA_LEASE_NAME'),
  }),
  'ha-lease-duration': durationFlag({
    usage: 'how long after the last renewal the other principal may take the Lease',
    default: 15_000,
    ...env('HA_LEASE_DURATION'),
    check: (value) => (value < 2_000 ? 'must be at least 2s' : undefined),
  }),
  'ha-lease-renew-deadline': durationFlag({
    usage: 'a principal that could not renew the Lease for this long stops writing; less than --ha-lease-duration',
    default: 10_000,
    ...env('HA_LEASE_RENEW_DEADLINE'),
    check: (value) => (value < 1_000 ? 'must be at least 1s' : undefined),
  }),
  ...fleetPageFlags(env),
};

/** The values of `argocd-agent principal`'s flags. */
export type PrincipalFlags = FlagValues<typeof principalFlags>;
