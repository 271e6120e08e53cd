import { expect, test } from 'vitest';
import { GoExpression } from '../lib/auth/index.ts';
import { parseFlags } from '../lib/ops/index.ts';
import { principalFlags } from './flags.ts';
import { headerWarning, principalSettings, spireWarning } from './settings.ts';

const options = (...args: string[]) =>
  principalSettings(parseFlags(principalFlags, { args: ['--namespace=argocd', ...args], env: {} }).values);

test('the usual set-up', () => {
  const { auth, tls } = options('--auth=mtls:subject:^CN=([^,]+)');
  expect(auth).toEqual({ method: 'mtls', source: 'subject', pattern: new GoExpression('^CN=([^,]+)') });
  expect(tls).toEqual({ from: 'secret', requireClientCertificate: true, settings: { minVersion: 'TLSv1.3' } });
});

test('an expression alone is about the subject; uri names the other source', () => {
  expect(options('--auth=mtls:CN=(.+)').auth).toMatchObject({
    source: 'subject',
    pattern: new GoExpression('CN=(.+)'),
  });
  expect(options('--auth=mtls:uri:spiffe://x/(.+)').auth).toMatchObject({ source: 'uri' });
});

const spire = ['--spire-agent-socket=unix:///a', '--spire-auth-method=mtls'];

test.each([spire, ['--spiffe-endpoint-socket=unix:///a']])('%s %s: SVIDs prove both sides', (...args) => {
  const { spire: settings, auth, tls } = options(...args.filter((one) => one !== undefined));
  expect(settings).toEqual({ endpoint: 'unix:///a', method: 'mtls' });
  expect(auth).toMatchObject({ method: 'mtls', source: 'uri', pattern: { source: 'spiffe://[^/]+/(.+)' } });
  expect(tls).toMatchObject({ from: 'workload', requireClientCertificate: true });
});

test.each([
  [['--namespace='], /set --namespace \(ARGOCD_PRINCIPAL_NAMESPACE\)/],
  [[], /--auth \(ARGOCD_PRINCIPAL_AUTH\): invalid auth string ""/],
  [['--auth=magic:x'], /unknown auth method: magic/],
  [['--auth=mtls:CN=.+'], /has no group that captures the agent's name/],
  [['--auth=mtls:CN=('], /is not a regular expression/],
  [['--auth=mtls:CN=(.+)', '--insecure-plaintext'], /mtls authentication cannot be used with --insecure-plaintext/],
  [['--auth=mtls:CN=(.+)', '--tls-cert=/x'], /Both --tls-cert and --tls-key have to be given/],
  [
    ['--auth=mtls:CN=(.+)', '--tls-max-version=tls1.2'],
    /--tls-max-version.*minimum TLS version \(tls1.3\) cannot be higher than maximum TLS version \(tls1.2\)/,
  ],
  [
    ['--auth=mtls:CN=(.+)', '--tls-min-version=', '--tls-max-version=tls1.2'],
    /--tls-max-version.*minimum TLS version \(tls1.3\) cannot be higher than maximum TLS version \(tls1.2\)/,
  ],
  [
    ['--spire-agent-socket=unix:///a'],
    "--spire-auth-method is required when --spire-agent-socket is set (use 'jwt' or 'mtls')",
  ],
  [['--spire-auth-method=jwt'], '--spire-auth-method requires --spire-agent-socket to be set'],
  [[...spire, '--spire-auth-method=magic'], `--spire-auth-method must be 'jwt' or 'mtls', got "magic"`],
  [
    [...spire, '--insecure-plaintext'],
    '--spire-agent-socket cannot be used with --insecure-plaintext; SPIRE provides TLS credentials',
  ],
  [[...spire, '--auth=mtls:CN=(.+)'], /needs agents that are named by SPIFFE IDs: set --auth mtls:uri/],
  [[...spire, '--root-ca-path=/x'], /cannot be used with --root-ca-path/],
  [[...spire, '--tls-cert=/x', '--tls-key=/y'], /cannot be used with --tls-cert/],
  [[...spire, '--insecure-tls-generate'], /cannot be used with --insecure-tls-generate/],
  [[...spire, '--enable-enrolment'], /cannot be used with --enable-enrolment/],
  [[...spire, '--ha-enabled'], /cannot be used with --ha-enabled/],
  [[...spire, '--spiffe-endpoint-socket=unix:///b'], /name different sockets/],
  [['--auth=mtls:CN=(.+)', '--redis-creds-dir-path=/none', '--redis-password=x'], /cannot be combined/],
  [['--auth=mtls:CN=(.+)', '--namespace-create-labels=a'], /is not key=value/],
])('%j is refused', (args, message) => expect(() => options(...args)).toThrow(message));

test('agents that name themselves in a header are a risk where others than the proxy reach the port', () => {
  const header = ['--auth=header:X-Client:^(.+)$', '--insecure-plaintext'];
  const warningFor = (...args: string[]) => headerWarning(options(...args));
  expect(warningFor(...header)).toMatch(
    /whoever reaches port 8443 can claim to be any agent by the header x-client: listen/,
  );
  expect(warningFor(...header, '--listen-host=10.0.0.1')).toBeDefined();
  expect(warningFor(...header, '--listen-host=127.0.0.1.example.com')).toBeDefined();
  for (const host of ['127.0.0.1', '127.0.0.6', '::1', '[::1]', 'localhost']) {
    expect(warningFor(...header, `--listen-host=${host}`), host).toBeUndefined();
  }
  expect(warningFor('--auth=mtls:CN=(.+)')).toBeUndefined();
});

test('jwt: agents are named by JWT-SVIDs and show no certificate', () => {
  const { auth, tls } = options('--spire-agent-socket=unix:///a', '--spire-auth-method=jwt');
  expect(auth).toEqual({ method: 'spiffe-jwt', pattern: new GoExpression('spiffe://[^/]+/(.+)') });
  expect(tls).toMatchObject({ from: 'workload', requireClientCertificate: false });
  expect(() => options('--auth=spiffe-jwt:^spiffe://x/(.+)$')).toThrow(/spiffe-jwt needs --spire-agent-socket/);
  const plain = ['--auth=spiffe-jwt:^spiffe://x/(.+)$', '--insecure-plaintext'];
  expect(() => options(...plain)).toThrow(/spiffe-jwt authentication cannot be used with --insecure-plaintext/);
});

test('an expression that admits several trust domains is a risk', () => {
  const jwt = ['--spire-agent-socket=unix:///a', '--spire-auth-method=jwt'];
  const warningFor = (...args: string[]) => spireWarning(options(...jwt, ...args));
  expect(warningFor()).toMatch('spiffe://[^/]+/(.+) does not begin with ^spiffe:// and one trust domain');
  expect(warningFor('--auth=spiffe-jwt:^spiffe://(a|b)/(.+)$')).toBeDefined();
  expect(warningFor('--auth=spiffe-jwt:spiffe://a/(.+)$')).toBeDefined();
  expect(warningFor('--auth=spiffe-jwt:^spiffe://a.+/(.+)$')).toBeDefined();
  expect(warningFor('--auth=spiffe-jwt:^spiffe://a\\.b-c.org/agent/(.+)$')).toBeUndefined();
  expect(spireWarning(options(...spire))).toBeUndefined();
});

test('self-registration needs the resource proxy and a Secret, and is off by default', () => {
  const auth = '--auth=mtls:CN=(.+)';
  expect(options(auth).selfRegistration).toBeUndefined();
  const on = [auth, '--enable-self-cluster-registration', '--self-registration-client-cert-secret=shared'];
  expect(options(...on).selfRegistration).toEqual({
    address: 'argocd-agent-resource-proxy:9090',
    identitySecret: 'shared',
  });
  for (const address of ['10.0.0.1:9090', '[fd00::1]:9090', 'proxy.example']) {
    expect(options(...on, `--resource-proxy-address=${address}`).selfRegistration?.address).toBe(address);
  }
  expect(() => options(...on.slice(0, 2))).toThrow(/needs --self-registration-client-cert-secret/);
  expect(() => options(...on, '--enable-resource-proxy=false')).toThrow(/needs the resource proxy/);
  expect(() => options(...on, '--resource-proxy-address=https://x')).toThrow(/must be host:port, not "https:\/\/x"/);
});

test('replicas need one key for tokens, and times that fit together', () => {
  const on = ['--auth=mtls:CN=(.+)', '--enable-replicas'];
  expect(options(...on).flags['replica-lease-duration']).toBe(5_000);
  expect(options(...on, '--ha-enabled').ha?.role).toBe('primary');
  expect(() => options(...on, '--insecure-jwt-generate')).toThrow(/needs one key for tokens/);
  expect(() => options(...on, '--replica-renew-deadline=5s')).toThrow(/must be more than --replica-renew-deadline/);
  expect(() => options(...on, '--replica-lease-duration=5500ms')).toThrow(/in whole seconds/);
});

test('a generated certificate is used whatever the files contain', () => {
  const { tls } = options('--auth=mtls:CN=(.+)', '--insecure-tls-generate', '--tls-cert=/x');
  expect(tls).toMatchObject({ from: 'generated' });
});

test('orders to a pair: nobody may give them by default, and their port has its own certificate or none', () => {
  const admin = (...flags: string[]) => options('--auth=mtls:CN=(.+)', '--ha-enabled', ...flags).ha?.admin;
  expect(admin()).toEqual({ port: 8405, auth: undefined, files: undefined });
  expect(admin('--ha-admin-auth=mtls:uri:^spiffe://x/', '--ha-admin-port=9405')).toEqual({
    port: 9405,
    auth: { source: 'uri', pattern: new GoExpression('^spiffe://x/') },
    files: undefined,
  });
  expect(() => admin('--ha-admin-auth=CN=x')).toThrow(/ha-admin-auth must start with 'mtls:'/);
  const files = ['--ha-admin-tls-cert=/a', '--ha-admin-tls-key=/b', '--ha-admin-ca=/c'];
  expect(admin(...files)?.files).toEqual({ cert: '/a', key: '/b', ca: '/c' });
  expect(() => admin(...files.slice(1))).toThrow(/--ha-admin-ca have to be given together/);
});
