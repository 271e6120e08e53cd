import { between, optionalPort, positive } from './checks.ts';
import { boolFlag, intFlag, listFlag, stringFlag } from './flags.ts';

/** Where the two programs differ in a flag that both have. */
export interface CommonDefaults {
  /** Start of every environment variable's name. */
  readonly prefix: 'ARGOCD_PRINCIPAL' | 'ARGOCD_AGENT';
  readonly metricsPort: number;
  readonly healthzPort: number;
  readonly healthzUsage: string;
  readonly tlsMinVersion: '' | 'tls1.3';
  readonly allowedNamespacesUsage: string;
  readonly mappingUsage: string;
  readonly webSocketUsage: string;
}

/** The flags that principal and agent share: names, environment variables, defaults and checks of the originals. */
export function commonFlags(program: CommonDefaults) {
  const env = (name: string) => ({ env: `${program.prefix}_${name}` });
  return {
    'log-level': listFlag({
      usage: 'log level: fatal, error, warning, info, debug or trace; component=level for one component',
      default: ['info'],
      ...env('LOG_LEVEL'),
    }),
    'log-format': stringFlag({ usage: 'log format: text or json', default: 'text', ...env('LOG_FORMAT') }),
    'full-detail': listFlag({
      usage: 'log complete objects: actions (writes), events (sent and received), informers (observed changes) or all',
      ...env('FULL_DETAIL'),
    }),
    'metrics-port': intFlag({
      usage: 'port of the metrics server; 0 for none',
      default: program.metricsPort,
      ...env('METRICS_PORT'),
      check: optionalPort,
    }),
    'healthz-port': intFlag({
      usage: program.healthzUsage,
      default: program.healthzPort,
      ...env('HEALTH_CHECK_PORT'),
      check: between(1, 32767),
    }),
    'pprof-port': intFlag({
      usage: 'port on 127.0.0.1 for CPU profiles and heap snapshots under /debug/pprof/; 0 for none',
      ...env('PPROF_PORT'),
      check: (port) => (port > 65535 ? 'must be at most 65535, or 0 for none' : undefined),
    }),
    'allowed-namespaces': listFlag({ usage: program.allowedNamespacesUsage, ...env('ALLOWED_NAMESPACES') }),
    'destination-based-mapping': boolFlag({ usage: program.mappingUsage, ...env('DESTINATION_BASED_MAPPING') }),
    'label-selector': stringFlag({
      usage: 'label selector: handle only Applications and AppProjects that match it',
      ...env('LABEL_SELECTOR'),
    }),
    'tls-min-version': stringFlag({
      usage: 'lowest TLS version: tls1.1, tls1.2 or tls1.3',
      default: program.tlsMinVersion,
      ...env('TLS_MIN_VERSION'),
    }),
    'tls-max-version': stringFlag({
      usage: 'highest TLS version: tls1.1, tls1.2 or tls1.3',
      ...env('TLS_MAX_VERSION'),
    }),
    'tls-ciphersuites': listFlag({
      usage: 'TLS cipher suites by their IANA names; "list" prints the supported ones',
      ...env('TLS_CIPHERSUITES'),
    }),
    'enable-websocket': boolFlag({ usage: program.webSocketUsage, ...env('ENABLE_WEBSOCKET') }),
    'grpc-max-message-size': intFlag({
      usage: 'maximum size of a gRPC message in bytes, sent or received',
      default: 16 * 1024 * 1024,
      ...env('GRPC_MAX_MESSAGE_SIZE'),
      check: positive,
    }),
    'otlp-address': stringFlag({
      usage: 'host:port of an OpenTelemetry collector (OTLP over gRPC) for traces; empty for none',
      ...env('OTLP_ADDRESS'),
    }),
    'otlp-insecure': boolFlag({ usage: 'send traces without TLS', ...env('OTLP_INSECURE') }),
    'redis-password': stringFlag({ usage: 'password of Redis', env: 'REDIS_PASSWORD' }),
    'redis-key-prefix': stringFlag({
      usage: "what the keys of Argo CD's cache in Redis begin with: redis.key.prefix of Argo CD 3.6",
      // Argo CD's own name: the same key of argocd-cmd-params-cm is the value of both.
      env: 'ARGOCD_REDIS_KEY_PREFIX',
    }),
    'redis-creds-dir-path': stringFlag({
      usage: 'directory with the password of Redis in file auth and, optionally, the user name in file auth_username',
      env: 'REDIS_CREDS_DIR_PATH',
    }),
    'redis-tls-enabled': boolFlag({ usage: 'connect to Redis with TLS', ...env('REDIS_TLS_ENABLED') }),
    'redis-tls-insecure': boolFlag({
      usage: "do not verify Redis's certificate",
      ...env('REDIS_TLS_INSECURE'),
    }),
    kubeconfig: stringFlag({
      usage:
        'path of a kubeconfig file; default: KUBECONFIG, the in-cluster configuration or ~/.kube/config, in this order',
    }),
    kubecontext: stringFlag({ usage: 'context of the kubeconfig file' }),
  };
}
