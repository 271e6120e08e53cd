import {
  between,
  boolFlag,
  commonFlags,
  durationFlag,
  type FlagValues,
  intFlag,
  notNegative,
  oneOf,
  positive,
  stringFlag,
} from '../lib/ops/index.ts';
import { spireFlags, trustDomainOf } from '../lib/spiffe/index.ts';

const program = { prefix: 'ARGOCD_AGENT' } as const;
const env = (name: string) => ({ env: `${program.prefix}_${name}` });

/** The flags of `argocd-agent agent`: names, environment variables and defaults of the original. */
export const agentFlags = {
  ...commonFlags({
    ...program,
    metricsPort: 8181,
    healthzPort: 8001,
    healthzUsage: 'port of the health server, which answers 200 while connected to the principal',
    tlsMinVersion: '',
    allowedNamespacesUsage:
      'additional namespaces for Applications, besides --namespace: shell globs or /regular expressions/',
    webSocketUsage: 'connect by WebSocket, for networks that only allow HTTP/1.1',
    mappingUsage: 'Applications keep the namespace that they have on the hub; the principal needs the same setting',
  }),
  'server-address': stringFlag({
    usage:
      'host name or address of the principal; of several, separated by commas and with or without a port of their own, the first that can be used is',
    ...env('REMOTE_SERVER'),
  }),
  'server-port': intFlag({
    usage: 'port of the principal',
    default: 443,
    ...env('REMOTE_PORT'),
    check: between(1, 65535),
  }),
  namespace: stringFlag({
    usage: "Argo CD's namespace on this cluster",
    default: 'argocd',
    short: 'n',
    ...env('NAMESPACE'),
  }),
  'agent-mode': stringFlag({
    usage: 'managed: the hub owns the Applications; autonomous: this cluster owns them, and the hub mirrors them',
    default: 'autonomous',
    ...env('MODE'),
    check: oneOf('managed', 'autonomous'),
  }),
  creds: stringFlag({
    usage:
      'how the agent authenticates: mtls:any, userpass:<file>, header:any or spiffe-jwt:any; by default as --spire-auth-method says',
    ...env('CREDS'),
  }),
  'insecure-tls': boolFlag({ usage: "do not verify the principal's certificate", ...env('TLS_INSECURE') }),
  'insecure-plaintext': boolFlag({
    usage: 'connect without TLS, for a service mesh that adds it',
    ...env('INSECURE_PLAINTEXT'),
  }),
  'root-ca-secret-name': stringFlag({
    usage: "Secret with the CA that verifies the principal's certificate",
    default: 'argocd-agent-ca',
    ...env('TLS_ROOT_CA_SECRET_NAME'),
  }),
  'root-ca-path': stringFlag({
    usage: "file with the CA that verifies the principal's certificate, instead of the Secret",
    ...env('TLS_ROOT_CA_PATH'),
  }),
  'tls-secret-name': stringFlag({
    usage: 'Secret with the client certificate (tls.crt, tls.key)',
    default: 'argocd-agent-client-tls',
    ...env('TLS_SECRET_NAME'),
  }),
  'tls-client-cert': stringFlag({
    usage: 'file with the client certificate, instead of the Secret',
    ...env('TLS_CLIENT_CERT_PATH'),
  }),
  'tls-client-key': stringFlag({
    usage: 'file with the client key, instead of the Secret',
    ...env('TLS_CLIENT_KEY_PATH'),
  }),
  ...spireFlags(program.prefix),
  'spire-principal-id': stringFlag({
    usage:
      'with --spire-agent-socket, the SPIFFE ID that the principal must have; empty: any whose trust domain has a bundle',
    ...env('SPIRE_PRINCIPAL_ID'),
    check: (value) =>
      value === '' || trustDomainOf(value) !== undefined
        ? undefined
        : `must be a SPIFFE ID, not ${JSON.stringify(value)}`,
  }),
  'keep-alive-ping-interval': durationFlag({
    usage:
      'interval of keep-alive pings, at least 10s; 0: ping only when sent data gets no answer; over WebSocket every 15s',
    ...env('KEEP_ALIVE_PING_INTERVAL'),
  }),
  'enable-compression': boolFlag({ usage: 'compress messages to the principal (gzip)', ...env('ENABLE_COMPRESSION') }),
  'informer-sync-timeout': durationFlag({
    usage: 'time limit for the first list of local resources; the agent exits when it is exceeded',
    default: 10_000,
    ...env('INFORMER_SYNC_TIMEOUT'),
    check: positive,
  }),
  'create-namespace': boolFlag({
    usage: 'create missing namespaces of Applications; only with --destination-based-mapping',
    ...env('CREATE_NAMESPACE'),
  }),
  'heartbeat-interval': durationFlag({
    usage: 'interval of heartbeat events on the event stream; 0 for none',
    ...env('HEARTBEAT_INTERVAL'),
    check: notNegative,
  }),
  'cache-refresh-interval': durationFlag({
    usage: "minimum interval at which the cluster's statistics are read from Redis; changes are sent to the principal",
    default: 10_000,
    ...env('CACHE_REFRESH_INTERVAL'),
    check: (interval) => (interval === 0 ? 'must not be 0' : notNegative(interval)),
  }),
  'buffer-informer-event-interval': durationFlag({
    usage: 'minimum interval of reports about one Application; 0: every change is reported at once',
    ...env('BUFFER_INFORMER_EVENT_INTERVAL'),
    check: notNegative,
  }),
  'ignore-unmanaged-apps': boolFlag({
    usage: 'accepted for compatibility; managed mode always ignores Applications that did not come from the principal',
    ...env('IGNORE_UNMANAGED_APPS'),
  }),
  'keep-gpg-keys': boolFlag({
    usage:
      "keep ConfigMap argocd-gpg-keys-cm, without keys, when the hub's is deleted: pods of Argo CD's repo server do not start without it",
    ...env('KEEP_GPG_KEYS'),
  }),
  'redis-addr': stringFlag({
    usage: "address of Argo CD's Redis on this cluster, which holds the cluster's statistics and resource trees",
    default: 'argocd-redis:6379',
    env: 'REDIS_ADDR',
  }),
  'redis-username': stringFlag({ usage: 'user name for Redis', env: 'REDIS_USERNAME' }),
  'redis-tls-ca-path': stringFlag({
    usage: "file with the CA that verifies Redis's certificate, instead of the Secret",
    ...env('REDIS_TLS_CA_PATH'),
  }),
  'redis-tls-ca-secret-name': stringFlag({
    usage: "Secret with the CA that verifies Redis's certificate (ca.crt)",
    default: 'argocd-redis-tls',
    ...env('REDIS_TLS_CA_SECRET_NAME'),
  }),
  'source-uid-mismatch-policy': stringFlag({
    usage:
      'when the hub has a new Application with the name of an old one: recreate (delete and create the copy) or upsert (update it)',
    default: 'recreate',
    ...env('SOURCE_UID_MISMATCH_POLICY'),
    check: oneOf('recreate', 'upsert'),
  }),
  'on-application-recreate': stringFlag({
    usage:
      'when a deleted copy is created again: ignore (keep its last status), clear-status (clear the last operation) or resync (start a sync)',
    default: 'ignore',
    ...env('ON_APPLICATION_RECREATE'),
    check: oneOf('ignore', 'clear-status', 'resync'),
  }),
  'adoption-policy': stringFlag({
    usage: 'take over an existing Application that has the name of one from the hub: always or never',
    default: 'always',
    ...env('ADOPTION_POLICY'),
    check: oneOf('always', 'never'),
  }),
  'enable-resource-proxy': boolFlag({
    usage: 'answer requests for live resources',
    default: true,
    ...env('ENABLE_RESOURCE_PROXY'),
  }),
  'operation-revisions': stringFlag({
    usage:
      'revisions that a sync from the hub may name in autonomous mode: known (those that the Application itself names, meant when it was last compared, or has deployed) or any',
    default: 'known',
    ...env('OPERATION_REVISIONS'),
    check: oneOf('known', 'any'),
  }),
  'live-access': stringFlag({
    usage:
      'live resources that are served: managed (those that belong to Applications) or all (limited only by the rights of the agent)',
    default: 'managed',
    ...env('LIVE_ACCESS'),
    check: oneOf('managed', 'all'),
  }),
  'terminal-idle-timeout': durationFlag({
    usage: 'close a web terminal after this time without data in either direction; 0 for never',
    default: 30 * 60_000,
    ...env('TERMINAL_IDLE_TIMEOUT'),
    check: notNegative,
  }),
};

/** The values of `argocd-agent agent`'s flags. */
export type AgentFlags = FlagValues<typeof agentFlags>;
