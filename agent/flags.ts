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
      'namespaces that Applications may live in besides --namespace: shell globs or /regular expressions/',
    webSocketUsage: 'connect over WebSocket, for networks that let only HTTP/1.1 through',
    mappingUsage: 'Applications keep their namespace; as on the principal',
  }),
  'server-address': stringFlag({ usage: 'host name or address of the principal', ...env('REMOTE_SERVER') }),
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
    usage: 'managed: the hub decides what runs here; autonomous: this cluster does, and the hub shows it',
    default: 'autonomous',
    ...env('MODE'),
    check: oneOf('managed', 'autonomous'),
  }),
  creds: stringFlag({
    usage: 'how the agent proves who it is: mtls:any, userpass:<file> or header:any',
    ...env('CREDS'),
  }),
  'insecure-tls': boolFlag({ usage: "do not verify the principal's certificate", ...env('TLS_INSECURE') }),
  'insecure-plaintext': boolFlag({
    usage: 'connect without TLS, for a service mesh that adds it',
    ...env('INSECURE_PLAINTEXT'),
  }),
  'root-ca-secret-name': stringFlag({
    usage: "Secret with the CA that the principal's certificate must come from",
    default: 'argocd-agent-ca',
    ...env('TLS_ROOT_CA_SECRET_NAME'),
  }),
  'root-ca-path': stringFlag({
    usage: "file with the CA that the principal's certificate must come from, instead of the Secret",
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
  'keep-alive-ping-interval': durationFlag({
    usage: 'time between keep-alive pings, at least 10s; 0 for none but when the connection is silent',
    ...env('KEEP_ALIVE_PING_INTERVAL'),
  }),
  'enable-compression': boolFlag({ usage: 'compress what is sent to the principal', ...env('ENABLE_COMPRESSION') }),
  'informer-sync-timeout': durationFlag({
    usage: 'how long the first listing of local resources may take before the agent gives up',
    default: 10_000,
    ...env('INFORMER_SYNC_TIMEOUT'),
    check: positive,
  }),
  'create-namespace': boolFlag({
    usage: 'create the namespaces that Applications live in; only with --destination-based-mapping',
    ...env('CREATE_NAMESPACE'),
  }),
  'heartbeat-interval': durationFlag({
    usage: 'time between signs of life on the event stream; 0 for none',
    ...env('HEARTBEAT_INTERVAL'),
    check: notNegative,
  }),
  'cache-refresh-interval': durationFlag({
    usage:
      "how often at most the local Redis is asked for the cluster's statistics, which the principal gets when they change",
    default: 10_000,
    ...env('CACHE_REFRESH_INTERVAL'),
    check: (interval) => (interval === 0 ? 'must not be 0' : notNegative(interval)),
  }),
  'buffer-informer-event-interval': durationFlag({
    usage: 'shortest time between two reports about one Application; 0 to report each change at once',
    ...env('BUFFER_INFORMER_EVENT_INTERVAL'),
    check: notNegative,
  }),
  'ignore-unmanaged-apps': boolFlag({
    usage: 'leave Applications alone that did not come from the principal; in managed mode that is always so',
    ...env('IGNORE_UNMANAGED_APPS'),
  }),
  'redis-addr': stringFlag({
    usage: "Argo CD's Redis on this cluster, where the cluster's statistics are",
    default: 'argocd-redis:6379',
    env: 'REDIS_ADDR',
  }),
  'redis-username': stringFlag({ usage: 'user name at Redis', env: 'REDIS_USERNAME' }),
  'redis-tls-ca-path': stringFlag({
    usage: "file with the CA that Redis's certificate must come from, instead of the Secret",
    ...env('REDIS_TLS_CA_PATH'),
  }),
  'redis-tls-ca-secret-name': stringFlag({
    usage: "Secret with the CA that Redis's certificate must come from (ca.crt)",
    default: 'argocd-redis-tls',
    ...env('REDIS_TLS_CA_SECRET_NAME'),
  }),
  'source-uid-mismatch-policy': stringFlag({
    usage: 'what to do with an Application that was made from another one of the same name: recreate or upsert',
    default: 'recreate',
    ...env('SOURCE_UID_MISMATCH_POLICY'),
    check: oneOf('recreate', 'upsert'),
  }),
  'on-application-recreate': stringFlag({
    usage: 'what an Application that was deleted here is made anew with: ignore, clear-status or resync',
    default: 'ignore',
    ...env('ON_APPLICATION_RECREATE'),
    check: oneOf('ignore', 'clear-status', 'resync'),
  }),
  'adoption-policy': stringFlag({
    usage: 'whether an Application that was here before is taken over: always or never',
    default: 'always',
    ...env('ADOPTION_POLICY'),
    check: oneOf('always', 'never'),
  }),
  'enable-resource-proxy': boolFlag({
    usage: 'answer requests for live resources',
    default: true,
    ...env('ENABLE_RESOURCE_PROXY'),
  }),
  'live-access': stringFlag({
    usage:
      'which live resources are served: managed (what belongs to Applications) or all (what the agent itself may do)',
    default: 'managed',
    ...env('LIVE_ACCESS'),
    check: oneOf('managed', 'all'),
  }),
  'terminal-idle-timeout': durationFlag({
    usage: 'close a web terminal that nothing comes from or goes to for so long; 0 for never',
    default: 30 * 60_000,
    ...env('TERMINAL_IDLE_TIMEOUT'),
    check: notNegative,
  }),
};

/** What `argocd-agent agent` was started with. */
export type AgentFlags = FlagValues<typeof agentFlags>;
