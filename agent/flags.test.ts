import { expect, test } from 'vitest';
import { formatDuration, parseFlags } from '../lib/ops/index.ts';
import { agentFlags } from './flags.ts';

/** The flags of `argocd-agent agent`: name, type, default, environment variable (after ARGOCD_AGENT_; $ is a whole name). */
const original = `
server-address                            string     -                                 REMOTE_SERVER
server-port                               int        443                               REMOTE_PORT
log-level                                 slice      info                              LOG_LEVEL
full-detail                               slice      -                                 FULL_DETAIL
redis-addr                                string     argocd-redis:6379                 $REDIS_ADDR
redis-creds-dir-path                      string     -                                 $REDIS_CREDS_DIR_PATH
redis-username                            string     -                                 $REDIS_USERNAME
redis-password                            string     -                                 $REDIS_PASSWORD
redis-tls-enabled                         bool       false                             REDIS_TLS_ENABLED
redis-tls-ca-path                         string     -                                 REDIS_TLS_CA_PATH
redis-tls-ca-secret-name                  string     argocd-redis-tls                  REDIS_TLS_CA_SECRET_NAME
redis-tls-insecure                        bool       false                             REDIS_TLS_INSECURE
log-format                                string     text                              LOG_FORMAT
insecure-tls                              bool       false                             TLS_INSECURE
insecure-plaintext                        bool       false                             INSECURE_PLAINTEXT
namespace                                 string     argocd                            NAMESPACE
agent-mode                                string     autonomous                        MODE
creds                                     string     -                                 CREDS
root-ca-secret-name                       string     argocd-agent-ca                   TLS_ROOT_CA_SECRET_NAME
root-ca-path                              string     -                                 TLS_ROOT_CA_PATH
tls-secret-name                           string     argocd-agent-client-tls           TLS_SECRET_NAME
tls-client-cert                           string     -                                 TLS_CLIENT_CERT_PATH
tls-client-key                            string     -                                 TLS_CLIENT_KEY_PATH
tls-min-version                           string     -                                 TLS_MIN_VERSION
tls-max-version                           string     -                                 TLS_MAX_VERSION
tls-ciphersuites                          slice      -                                 TLS_CIPHERSUITES
enable-websocket                          bool       false                             ENABLE_WEBSOCKET
metrics-port                              int        8181                              METRICS_PORT
healthz-port                              int        8001                              HEALTH_CHECK_PORT
keep-alive-ping-interval                  duration   0                                 KEEP_ALIVE_PING_INTERVAL
enable-compression                        bool       false                             ENABLE_COMPRESSION
pprof-port                                int        0                                 PPROF_PORT
enable-resource-proxy                     bool       true                              ENABLE_RESOURCE_PROXY
cache-refresh-interval                    duration   10s                               CACHE_REFRESH_INTERVAL
informer-sync-timeout                     duration   10s                               INFORMER_SYNC_TIMEOUT
buffer-informer-event-interval            duration   0                                 BUFFER_INFORMER_EVENT_INTERVAL
heartbeat-interval                        duration   0                                 HEARTBEAT_INTERVAL
grpc-max-message-size                     int        209715200                         GRPC_MAX_MESSAGE_SIZE
otlp-address                              string     -                                 OTLP_ADDRESS
otlp-insecure                             bool       false                             OTLP_INSECURE
destination-based-mapping                 bool       false                             DESTINATION_BASED_MAPPING
create-namespace                          bool       false                             CREATE_NAMESPACE
ignore-unmanaged-apps                     bool       false                             IGNORE_UNMANAGED_APPS
source-uid-mismatch-policy                string     recreate                          SOURCE_UID_MISMATCH_POLICY
on-application-recreate                   string     ignore                            ON_APPLICATION_RECREATE
allowed-namespaces                        slice      -                                 ALLOWED_NAMESPACES
label-selector                            string     -                                 LABEL_SELECTOR
adoption-policy                           string     always                            ADOPTION_POLICY
spire-agent-socket                        string     -                                 SPIRE_AGENT_SOCKET
spire-auth-method                         string     -                                 SPIRE_AUTH_METHOD
kubeconfig                                string     -                                 -
kubecontext                               string     -                                 -
`;

const rows = original
  .trim()
  .split('\n')
  .map((line) => line.trim().split(/ +/) as [flag: string, type: string, fallback: string, variable: string])
  .map(([flag, type, fallback, variable]) => {
    const env = variable.startsWith('$')
      ? variable.slice(1)
      : variable === '-'
        ? undefined
        : `ARGOCD_AGENT_${variable}`;
    return { flag, type, fallback: fallback === '-' ? '' : fallback, env };
  });

/** Defaults that differ on purpose: docs/security.md says why. */
const ownDefaults: Readonly<Record<string, string>> = { 'grpc-max-message-size': String(16 * 1024 * 1024) };

const show = (type: string, value: unknown): string => {
  if (type === 'strings') {
    return (value as string[]).join(',');
  }
  return type === 'duration' ? formatDuration(value as number).replace(/^0s$/, '0') : String(value);
};

test.each(rows)("--$flag is the original's", ({ flag, type, fallback, env }) => {
  const ours = Object.entries(agentFlags).find(([name]) => name === flag)?.[1];
  if (ours === undefined) {
    throw new Error('it is missing');
  }
  expect(ours.type).toBe(type === 'slice' ? 'strings' : type);
  expect(show(ours.type, ours.default)).toBe(ownDefaults[flag] ?? fallback);
  expect(ours.env).toBe(env);
});

test('these are ours alone', () => {
  const known = rows.map(({ flag }) => flag);
  expect(Object.keys(agentFlags).filter((name) => !known.includes(name))).toEqual([
    'redis-key-prefix',
    'spiffe-endpoint-socket',
    'spire-principal-id',
    'keep-gpg-keys',
    'operation-revisions',
    'live-access',
    'terminal-idle-timeout',
  ]);
});

test('values are read from the environment as the originals read them', () => {
  const read = (env: Record<string, string>) => parseFlags(agentFlags, { args: [], env });
  const { values, warnings } = read({
    ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT: '1m30s',
    ARGOCD_AGENT_REMOTE_PORT: '0o17',
    ARGOCD_AGENT_CREATE_NAMESPACE: 'TRUE',
    ARGOCD_AGENT_CREDS: '',
  });
  expect(warnings).toEqual([]);
  expect(values).toMatchObject({
    'informer-sync-timeout': 90_000,
    'server-port': 15,
    'create-namespace': true,
    creds: '',
  });
  const bad = read({ ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT: '30', ARGOCD_AGENT_CREATE_NAMESPACE: '' });
  expect(bad.warnings).toHaveLength(2);
  expect(bad.values).toMatchObject({ 'informer-sync-timeout': 10_000, 'create-namespace': false });
});
