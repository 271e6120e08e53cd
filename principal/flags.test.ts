import { expect, test } from 'vitest';
import { formatDuration, parseFlags } from '../lib/ops/index.ts';
import { principalFlags } from './flags.ts';

/** The flags of `argocd-agent principal`: name, type, default, environment variable (after ARGOCD_PRINCIPAL_; $ is a whole name). */
const original = `
listen-host                               string     -                                 LISTEN_HOST
listen-port                               int        8443                              LISTEN_PORT
log-level                                 slice      info                              LOG_LEVEL
log-format                                string     text                              LOG_FORMAT
full-detail                               slice      -                                 FULL_DETAIL
metrics-port                              int        8000                              METRICS_PORT
namespace                                 string     -                                 NAMESPACE
allowed-namespaces                        slice      -                                 ALLOWED_NAMESPACES
namespace-create-enable                   bool       false                             NAMESPACE_CREATE_ENABLE
namespace-create-pattern                  string     -                                 NAMESPACE_CREATE_PATTERN
namespace-create-labels                   slice      -                                 NAMESPACE_CREATE_LABELS
tls-secret-name                           string     argocd-agent-principal-tls        TLS_SECRET_NAME
tls-cert                                  string     -                                 TLS_SERVER_CERT_PATH
tls-key                                   string     -                                 TLS_SERVER_KEY_PATH
insecure-tls-generate                     bool       false                             TLS_SERVER_ALLOW_GENERATE
insecure-plaintext                        bool       false                             INSECURE_PLAINTEXT
tls-ca-secret-name                        string     argocd-agent-ca                   TLS_SERVER_ROOT_CA_SECRET_NAME
root-ca-path                              string     -                                 TLS_SERVER_ROOT_CA_PATH
require-client-certs                      bool       false                             TLS_CLIENT_CERT_REQUIRE
client-cert-subject-match                 bool       false                             TLS_CLIENT_CERT_MATCH_SUBJECT
tls-min-version                           string     tls1.3                            TLS_MIN_VERSION
tls-max-version                           string     -                                 TLS_MAX_VERSION
tls-ciphersuites                          slice      -                                 TLS_CIPHERSUITES
resource-proxy-secret-name                string     argocd-agent-resource-proxy-tls   RESOURCE_PROXY_SECRET_NAME
resource-proxy-cert-path                  string     -                                 RESOURCE_PROXY_TLS_CERT_PATH
resource-proxy-key-path                   string     -                                 RESOURCE_PROXY_TLS_KEY_PATH
resource-proxy-ca-secret-name             string     argocd-agent-ca                   RESOURCE_PROXY_CA_SECRET_NAME
resource-proxy-ca-path                    string     -                                 RESOURCE_PROXY_TLS_CA_PATH
jwt-secret-name                           string     argocd-agent-jwt                  JWT_SECRET_NAME
jwt-key                                   string     -                                 JWT_KEY_PATH
insecure-jwt-generate                     bool       false                             JWT_ALLOW_GENERATE
auth                                      string     -                                 AUTH
enable-websocket                          bool       false                             ENABLE_WEBSOCKET
enable-resource-proxy                     bool       true                              ENABLE_RESOURCE_PROXY
resource-proxy-address                    string     argocd-agent-resource-proxy:9090  RESOURCE_PROXY_ADDRESS
keepalive-min-interval                    duration   0                                 KEEP_ALIVE_MIN_INTERVAL
redis-server-address                      string     argocd-redis:6379                 REDIS_SERVER_ADDRESS
redis-password                            string     -                                 $REDIS_PASSWORD
redis-creds-dir-path                      string     -                                 $REDIS_CREDS_DIR_PATH
disable-redis-proxy                       bool       false                             DISABLE_REDIS_PROXY
redis-compression-type                    string     gzip                              REDIS_COMPRESSION_TYPE
pprof-port                                int        0                                 PPROF_PORT
healthz-port                              int        8003                              HEALTH_CHECK_PORT
grpc-max-message-size                     int        209715200                         GRPC_MAX_MESSAGE_SIZE
event-processors                          int        10                                EVENT_PROCESSORS
otlp-address                              string     -                                 OTLP_ADDRESS
otlp-insecure                             bool       false                             OTLP_INSECURE
redis-tls-enabled                         bool       false                             REDIS_TLS_ENABLED
redis-proxy-server-tls-cert               string     -                                 REDIS_PROXY_SERVER_TLS_CERT_PATH
redis-proxy-server-tls-key                string     -                                 REDIS_PROXY_SERVER_TLS_KEY_PATH
redis-proxy-server-tls-secret-name        string     argocd-redis-proxy-tls            REDIS_PROXY_SERVER_TLS_SECRET_NAME
redis-ca-path                             string     -                                 REDIS_CA_PATH
redis-ca-secret-name                      string     argocd-redis-tls                  REDIS_CA_SECRET_NAME
redis-tls-insecure                        bool       false                             REDIS_TLS_INSECURE
destination-based-mapping                 bool       false                             DESTINATION_BASED_MAPPING
label-selector                            string     -                                 LABEL_SELECTOR
spire-agent-socket                        string     -                                 SPIRE_AGENT_SOCKET
spire-auth-method                         string     -                                 SPIRE_AUTH_METHOD
kubeconfig                                string     -                                 -
kubecontext                               string     -                                 -
enable-self-cluster-registration          bool       false                             ENABLE_SELF_CLUSTER_REGISTRATION
self-registration-client-cert-secret      string     -                                 SELF_REGISTRATION_CLIENT_CERT_SECRET
ha-enabled                                bool       false                             HA_ENABLED
ha-preferred-role                         string     primary                           HA_PREFERRED_ROLE
ha-peer-address                           string     -                                 HA_PEER_ADDRESS
ha-failover-timeout                       duration   30s                               HA_FAILOVER_TIMEOUT
ha-admin-port                             int        0                                 HA_ADMIN_PORT
ha-admin-auth                             string     -                                 HA_ADMIN_AUTH
ha-admin-tls-cert                         string     -                                 HA_ADMIN_TLS_CERT
ha-admin-tls-key                          string     -                                 HA_ADMIN_TLS_KEY
ha-admin-ca                               string     -                                 HA_ADMIN_CA
ha-allowed-replication-clients            slice      -                                 HA_ALLOWED_REPLICATION_CLIENTS
ha-replication-initial-ack-timeout        duration   0                                 HA_REPLICATION_INITIAL_ACK_TIMEOUT
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
        : `ARGOCD_PRINCIPAL_${variable}`;
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
  const ours = Object.entries(principalFlags).find(([name]) => name === flag)?.[1];
  if (ours === undefined) {
    throw new Error(`--${flag} is missing`);
  }
  expect(ours.type).toBe(type === 'slice' ? 'strings' : type);
  expect(show(ours.type, ours.default)).toBe(ownDefaults[flag] ?? fallback);
  expect(ours.env).toBe(env);
});

test('these are ours alone', () => {
  const known = rows.map(({ flag }) => flag);
  expect(Object.keys(principalFlags).filter((name) => !known.includes(name))).toEqual([
    'redis-key-prefix',
    'autonomous-project-groups',
    'share-default-project',
    'share-repositories',
    'application-events',
    'spiffe-endpoint-socket',
    'agent-disconnect-grace-period',
    'agent-max-objects',
    'agent-max-bytes',
    'agent-max-object-bytes',
    'agent-max-writes',
    'agent-max-written-bytes',
    'enable-replicas',
    'replica-listen',
    'replica-address',
    'replica-renew-interval',
    'replica-renew-deadline',
    'replica-lease-duration',
    'audit-log-path',
    'audit-log-maxsize',
    'audit-webhook-url',
    'audit-webhook-token-path',
    'events-sink-url',
    'events-sink-token-path',
    'events-mode',
    'events-out-of-step-after',
    'application-metrics',
    'application-metrics-labels',
    'resource-proxy-listen',
    'enable-enrolment',
    'resource-proxy-max-answer-size',
    'terminal-idle-timeout',
    'redis-proxy-listen',
    'ha-lease-kubeconfig',
    'ha-lease-kubecontext',
    'ha-lease-namespace',
    'ha-lease-name',
    'ha-lease-duration',
    'ha-lease-renew-deadline',
    'fleet-page-listen',
    'fleet-page-path',
    'fleet-page-plaintext',
    'fleet-page-login-url',
    'fleet-page-proxy-ca-secret-name',
    'fleet-page-proxy-names',
    'fleet-page-proxy-loopback',
  ]);
});

test('values are read from the environment as the originals read them', () => {
  const read = (env: Record<string, string>) => parseFlags(principalFlags, { args: [], env });
  const { values, warnings } = read({
    ARGOCD_PRINCIPAL_LISTEN_PORT: '0x1f',
    ARGOCD_PRINCIPAL_TLS_CLIENT_CERT_REQUIRE: 'T',
    ARGOCD_PRINCIPAL_ALLOWED_NAMESPACES: 'a, b ,c-*',
    ARGOCD_PRINCIPAL_TLS_MIN_VERSION: '',
  });
  expect(warnings).toEqual([]);
  expect(values).toMatchObject({
    'listen-port': 31,
    'require-client-certs': true,
    'allowed-namespaces': ['a', 'b', 'c-*'],
    'tls-min-version': '',
  });
  const bad = read({ ARGOCD_PRINCIPAL_LISTEN_PORT: 'many', ARGOCD_PRINCIPAL_TLS_CLIENT_CERT_REQUIRE: 'yes' });
  expect(bad.warnings).toHaveLength(2);
  expect(bad.values).toMatchObject({ 'listen-port': 8443, 'require-client-certs': false });
});
