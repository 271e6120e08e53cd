import {
  between,
  boolFlag,
  durationFlag,
  type FlagValues,
  intFlag,
  listFlag,
  oneOf,
  optionalPort,
  positive,
  stringFlag,
} from '../lib/ops/index.ts';

const env = (name: string) => ({ env: `ARGOCD_AGENT_${name}` });

/** The flags of `argocd-agent agent`: names, environment variables and defaults of the original. */
export const agentFlags = {
  'server-address': stringFlag({ usage: 'host name or address of the principal', ...env('REMOTE_SERVER') }),
  'server-port': intFlag({
    usage: 'port of the principal',
    default: 443,
    ...env('REMOTE_PORT'),
    check: between(1, 65535),
  }),
  'log-level': listFlag({
    usage: 'log level: fatal, error, warning, info, debug or trace; component=level for one component',
    default: ['info'],
    ...env('LOG_LEVEL'),
  }),
  'log-format': stringFlag({ usage: 'log format: text or json', default: 'text', ...env('LOG_FORMAT') }),
  'metrics-port': intFlag({
    usage: 'port of the metrics server; 0 for none',
    default: 8181,
    ...env('METRICS_PORT'),
    check: optionalPort,
  }),
  'healthz-port': intFlag({
    usage: 'port of the health server, which answers 200 while connected to the principal',
    default: 8001,
    ...env('HEALTH_CHECK_PORT'),
    check: between(1, 32767),
  }),
  namespace: stringFlag({
    usage: "Argo CD's namespace on this cluster",
    default: 'argocd',
    short: 'n',
    ...env('NAMESPACE'),
  }),
  'agent-mode': stringFlag({
    usage: 'managed: the principal decides what runs here',
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
  'tls-min-version': stringFlag({
    usage: 'lowest TLS version: tls1.2 or tls1.3',
    ...env('TLS_MIN_VERSION'),
    check: oneOf('', 'tls1.2', 'tls1.3'),
  }),
  'tls-max-version': stringFlag({
    usage: 'highest TLS version: tls1.2 or tls1.3',
    ...env('TLS_MAX_VERSION'),
    check: oneOf('', 'tls1.2', 'tls1.3'),
  }),
  'keep-alive-ping-interval': durationFlag({
    usage: 'time between keep-alive pings, at least 10s; 0 for none but when the connection is silent',
    ...env('KEEP_ALIVE_PING_INTERVAL'),
  }),
  'enable-compression': boolFlag({ usage: 'compress what is sent to the principal', ...env('ENABLE_COMPRESSION') }),
  'grpc-max-message-size': intFlag({
    usage: 'largest message in bytes, both ways',
    default: 200 * 1024 * 1024,
    ...env('GRPC_MAX_MESSAGE_SIZE'),
    check: positive,
  }),
  'informer-sync-timeout': durationFlag({
    usage: 'how long the first listing of local resources may take before the agent gives up',
    default: 10_000,
    ...env('INFORMER_SYNC_TIMEOUT'),
    check: positive,
  }),
  'destination-based-mapping': boolFlag({
    usage: 'Applications keep their namespace; as on the principal',
    ...env('DESTINATION_BASED_MAPPING'),
  }),
  'create-namespace': boolFlag({
    usage: 'create the namespaces that Applications live in; only with --destination-based-mapping',
    ...env('CREATE_NAMESPACE'),
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
  'allowed-namespaces': listFlag({
    usage: 'namespaces that Applications may live in besides --namespace: shell globs or /regular expressions/',
    ...env('ALLOWED_NAMESPACES'),
  }),
  'label-selector': stringFlag({
    usage: 'only handle Applications and AppProjects with these labels',
    ...env('LABEL_SELECTOR'),
  }),
  'adoption-policy': stringFlag({
    usage: 'whether an Application that was here before is taken over: always or never',
    default: 'always',
    ...env('ADOPTION_POLICY'),
    check: oneOf('always', 'never'),
  }),
  'enable-resource-proxy': boolFlag({
    usage: 'answer requests for live resources; only false in this version',
    hidden: true,
    ...env('ENABLE_RESOURCE_PROXY'),
    check: (on) => (on ? 'the resource proxy is not supported by this version' : undefined),
  }),
  kubeconfig: stringFlag({ usage: 'path of a kubeconfig file; without it the in-cluster configuration is used' }),
  kubecontext: stringFlag({ usage: 'context of the kubeconfig file' }),
};

/** What `argocd-agent agent` was started with. */
export type AgentFlags = FlagValues<typeof agentFlags>;

/** Flags of the original for features that this version does not have, with their environment variables. */
export const unsupportedAgentFlags: Readonly<Record<string, string | undefined>> = {
  'redis-addr': undefined,
  'redis-creds-dir-path': undefined,
  'redis-username': undefined,
  'redis-password': undefined,
  ...Object.fromEntries(
    Object.entries({
      'full-detail': 'FULL_DETAIL',
      'redis-tls-enabled': 'REDIS_TLS_ENABLED',
      'redis-tls-ca-path': 'REDIS_TLS_CA_PATH',
      'redis-tls-ca-secret-name': 'REDIS_TLS_CA_SECRET_NAME',
      'redis-tls-insecure': 'REDIS_TLS_INSECURE',
      'tls-ciphersuites': 'TLS_CIPHERSUITES',
      'enable-websocket': 'ENABLE_WEBSOCKET',
      'pprof-port': 'PPROF_PORT',
      'cache-refresh-interval': 'CACHE_REFRESH_INTERVAL',
      'buffer-informer-event-interval': 'BUFFER_INFORMER_EVENT_INTERVAL',
      'heartbeat-interval': 'HEARTBEAT_INTERVAL',
      'otlp-address': 'OTLP_ADDRESS',
      'otlp-insecure': 'OTLP_INSECURE',
      'ignore-unmanaged-apps': 'IGNORE_UNMANAGED_APPS',
    }).map(([flag, suffix]) => [flag, `ARGOCD_AGENT_${suffix}`]),
  ),
};
