import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseFlags } from '../lib/ops/index.ts';
import { connectionSettings } from './connection/connect.ts';
import { agentFlags } from './flags.ts';
import { agentSettings } from './settings.ts';

const read = (...args: string[]) =>
  agentSettings(parseFlags(agentFlags, { args: ['--agent-mode=managed', ...args], env: {} }).values);
const options = (...args: string[]) => read('--server-address=default', ...args);

test.each([
  [['--server-address=hub'], ['hub:443']],
  [['--server-address=fd00::1'], ['[fd00::1]:443']],
  [['--server-address=hub:8443'], ['hub:8443:443']],
  [
    ['--server-address=hub, hub2:8443 ,[fd00::1]:9443,fd00::2', '--server-port=444'],
    ['hub:444', 'hub2:8443', '[fd00::1]:9443', '[fd00::2]:444'],
  ],
  [['--server-address=hub', '--server-address=hub2'], ['hub2:443']],
])('%j are the addresses %j', (args, addresses) => {
  const { server, otherServers } = connectionSettings(options(...args));
  expect([server, ...otherServers]).toEqual(addresses);
});

test('the usual set-up', () => {
  expect(options('--creds=mtls:any')).toMatchObject({
    credentials: { method: 'mtls', credentials: {} },
    tls: { verify: true, files: false },
  });
});

test('a credential file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'creds-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'creds');
  writeFileSync(file, 'agent:se:cret\nsecond line');
  expect(options(`--creds=userpass:${file}`).credentials).toEqual({
    method: 'userpass',
    credentials: { clientid: 'agent', clientsecret: 'se:cret' },
  });
  writeFileSync(file, 'nothing');
  expect(() => options(`--creds=userpass:${file}`)).toThrow(/first line of .* is not <name>:<password>/);
});

test('jwt: the agent shows no certificate, and a JWT-SVID when it logs in', () => {
  const args = ['--spire-agent-socket=unix:///a', '--spire-auth-method=jwt'];
  expect(options(...args).credentials).toEqual({ method: 'spiffe-jwt', credentials: {} });
  expect(() => options('--creds=spiffe-jwt:')).toThrow(/spiffe-jwt needs --spire-agent-socket/);
});

const spire = ['--spire-agent-socket=unix:///a', '--spire-auth-method=mtls'];

test.each([spire, ['--spiffe-endpoint-socket=unix:///a']])('%s %s: the agent shows its X.509-SVID', (...args) => {
  const { spire: settings, credentials } = options(...args.filter((one) => one !== undefined));
  expect(settings).toEqual({ endpoint: 'unix:///a', method: 'mtls' });
  expect(credentials.method).toBe('mtls');
});

test.each([
  [['--server-address='], /No remote specified: set --server-address \(ARGOCD_AGENT_REMOTE_SERVER\)/],
  [['--namespace='], /--namespace \(ARGOCD_AGENT_NAMESPACE\) is empty/],
  [
    ['--agent-mode=autonomous', '--destination-based-mapping'],
    /--destination-based-mapping .* is only for --agent-mode managed/,
  ],
  [['--tls-max-version=tls1.1', '--tls-min-version=tls1.2'], /minimum TLS version \(tls1.2\) cannot be higher/],
  [['--tls-ciphersuites=NONSENSE'], /--tls-ciphersuites: .*NONSENSE/],
  [['--redis-addr=redis'], /--redis-addr "redis" is no address/],
  [['--source-uid-mismatch-policy=delete'], /--source-uid-mismatch-policy.*recreate, upsert/],
  [['--create-namespace'], /needs --destination-based-mapping/],
  [['--tls-client-key=/x'], /Both --tls-client-cert and --tls-client-key have to be given/],
  [['--creds=mtls'], /invalid cred string/],
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
  [
    [...spire, '--insecure-tls'],
    '--spire-agent-socket cannot be used with --insecure-tls; SPIRE handles certificate verification',
  ],
  [[...spire, '--tls-client-cert=/a', '--tls-client-key=/b'], /cannot be used with --tls-client-cert/],
  [['--spire-principal-id=spiffe://x/principal'], '--spire-principal-id requires --spire-agent-socket to be set'],
  [[...spire, '--spire-principal-id=principal'], /--spire-principal-id.*must be a SPIFFE ID, not "principal"/],
  [[...spire, '--root-ca-path=/a'], /cannot be used with --root-ca-path/],
  [[...spire, '--spiffe-endpoint-socket=unix:///b'], /name different sockets/],
  [['--creds=userpass:/does/not/exist'], /credential file cannot be read: ENOENT/],
])('%j is refused', (args, message) => expect(() => options(...args)).toThrow(message));

test('defect 43: an unknown adoption policy is refused', () => {
  expect(() => options('--adoption-policy=sometimes')).toThrow(/--adoption-policy.*always, never/);
});
