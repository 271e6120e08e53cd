import { createPrivateKey, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { configMaps, secrets } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { ensureNamespaces, twoContexts } from '../testing/lab.ts';
import { runCtl } from '../testing/run-ctl.ts';

let cluster: SharedCluster;
let kubeconfig: string;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'agentctl' });
  kubeconfig = await twoContexts(cluster);
  await ensureNamespaces(cluster, 'argocd', 'other');
});
afterAll(() => cluster?.stop());

async function run(line: string, input = '') {
  return runCtl([...line.split(' '), '--kubeconfig', kubeconfig], { input });
}

const read = async (name: string, namespace = 'argocd') => {
  const secret = await cluster.client.get(secrets, { namespace, name });
  return secret === undefined ? undefined : { ...secret, text: decodeSecret(secret) };
};

test('pki: init, inspect, dump, issue, propagate, delete', async () => {
  expect(await run('pki inspect')).toMatchObject({ code: 1, err: expect.stringContaining('CA is not initialized') });
  expect(await run('pki issue principal')).toMatchObject({ code: 1, err: '[FATAL]: CA is not initialized.\n' });
  expect(await run('pki init --key-algorithm=none')).toMatchObject({ code: 1 });
  expect(await run('pki init --days=0')).toMatchObject({
    code: 1,
    err: '[FATAL]: validity days must be greater than 0, got 0\n',
  });
  expect(await run('pki init --key-size=2048 --days=100')).toEqual({
    code: 0,
    out: 'Generating CA and storing it in secret\nSuccess. CA data stored in secret argocd/argocd-agent-ca\n',
    err: '',
  });
  expect(await run('pki init')).toMatchObject({
    code: 1,
    err: '[FATAL]: CA secret already exist. Please delete it before generating.\n',
  });
  expect((await run('pki init -f --key-algorithm=ecdsa-p384')).code).toBe(0);
  const ca = await read('argocd-agent-ca');
  expect(ca?.type).toBe('kubernetes.io/tls');
  const authority = new X509Certificate(ca?.text['tls.crt'] ?? '');
  expect([authority.ca, authority.subject]).toEqual([true, 'O=DO NOT USE IN PRODUCTION\nCN=argocd-agent-ca']);

  expect((await run('pki dump --all')).out).toBe(`${ca?.text['tls.crt']}${ca?.text['tls.key']}`);
  expect((await run('pki dump --key')).out).toMatch(/^-----BEGIN PRIVATE KEY-----/);

  expect(await run('pki issue principal --ip 10.0.0.1,::1 --dns hub.example.com --key-algorithm ed25519')).toEqual({
    code: 0,
    out: 'Secret argocd/argocd-agent-principal-tls created\n',
    err: '',
  });
  expect(await run('pki issue principal')).toMatchObject({
    code: 1,
    err: '[FATAL]: Certificate exists, please use --upsert to reissue.\n',
  });
  expect((await run('pki issue principal -u --key-size 2048')).out).toBe(
    'Secret argocd/argocd-agent-principal-tls updated.\n',
  );
  expect(await run('pki issue principal -u --ip x')).toMatchObject({
    code: 1,
    err: '[FATAL]: Error generating certificate: invalid IP address: x\n',
  });
  expect((await run('pki issue principal -u --days 9999')).err).toContain('would outlive the CA');
  const principal = await read('argocd-agent-principal-tls');
  const certificate = new X509Certificate(principal?.text['tls.crt'] ?? '');
  expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
  expect(certificate.checkPrivateKey(createPrivateKey(principal?.text['tls.key'] ?? ''))).toBe(true);
  expect([certificate.checkHost('localhost'), certificate.checkIP('127.0.0.1')]).toEqual(['localhost', '127.0.0.1']);
  expect((await run('pki issue resource-proxy --no-san --key-algorithm ecdsa-p521')).code).toBe(0);

  const json = JSON.parse((await run('pki inspect')).out);
  expect(json.ca).toMatchObject({
    subject: 'CN=argocd-agent-ca,O=DO NOT USE IN PRODUCTION',
    keyType: 'ECDSA',
    keyLength: 384,
    notBefore: expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$/),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(json.principal).toMatchObject({ keyType: 'RSA', keyLength: 2048, ips: ['127.0.0.1'], dns: ['localhost'] });
  expect(json.resourceProxy).toMatchObject({ keyType: 'ECDSA', keyLength: 521 });
  const shown = (await run('pki inspect -o text')).out;
  expect(shown).toMatch(/^CA: +\{CN=argocd-agent-ca,O=DO NOT USE IN PRODUCTION ECDSA 384 /);
  expect(shown.trim().split('\n')).toHaveLength(3);
  expect((await run('pki inspect -o yaml')).out).toMatch(/^ca:\n {2}subject: CN=argocd-agent-ca/);
  expect(await run('pki inspect -o xml')).toMatchObject({ code: 1, err: '[FATAL]: unknown output format: xml\n' });

  expect(Object.keys(json)).toEqual(['ca', 'principal', 'resourceProxy']);
  expect(await run('pki issue shared-client')).toMatchObject({
    code: 1,
    err: '[FATAL]: Principal kubecontext must be set.\n',
  });
  const client = '--key-algorithm ecdsa-p256 --days 10';
  expect(await run(`pki issue shared-client --principal-context hub ${client}`)).toEqual({
    code: 0,
    out: 'Secret argocd/argocd-agent-shared-client-tls created\n',
    err: '',
  });
  const shared = await read('argocd-agent-shared-client-tls');
  expect([shared?.type, Object.keys(shared?.text ?? {}).sort()]).toEqual(['kubernetes.io/tls', ['tls.crt', 'tls.key']]);
  const sharedCertificate = new X509Certificate(shared?.text['tls.crt'] ?? '');
  expect(sharedCertificate.subject).toBe('O=DO NOT USE IN PRODUCTION\nCN=argocd-agent-shared-client');
  expect(sharedCertificate.keyUsage, 'for clients alone').toEqual(['1.3.6.1.5.5.7.3.2']);
  expect((await run(`pki issue ha-admin ${client}`)).out).toBe('Secret argocd/argocd-agent-ha-admin-tls created\n');
  expect((await run(`pki issue ha-admin --name admin1 ${client}`)).err).toContain('please use --upsert');
  expect((await run(`pki issue ha-admin --name admin1 --upsert ${client}`)).code).toBe(0);
  expect(JSON.parse((await run('pki inspect')).out)).toMatchObject({
    haAdmin: { subject: 'CN=admin1,O=DO NOT USE IN PRODUCTION', keyType: 'ECDSA' },
  });

  expect((await run('pki inspect -o text')).out).toMatch(/\nHA Admin: +\{CN=admin1,/);

  const sides = '--principal-context hub --agent-context east';
  expect(await run(`pki propagate ${sides} --agent-namespace other`)).toEqual({
    code: 0,
    out: 'Agent CA secret other/argocd-agent-ca created\n',
    err: '',
  });
  expect((await run(`pki propagate ${sides} --agent-namespace other`)).err).toContain('Agent CA secret already exists');
  expect(await run(`pki issue agent east ${sides} --agent-namespace other --key-size 2048`)).toEqual({
    code: 0,
    out: 'Secret other/argocd-agent-client-tls created\nAgent CA secret other/argocd-agent-ca created\n',
    err: '',
  });
  expect((await read('argocd-agent-ca', 'other'))?.text).toEqual({ 'ca.crt': ca?.text['tls.crt'] });

  expect(await run('pki delete', 'yes\n')).toMatchObject({
    code: 1,
    out: 'Really delete CA (use uppercase YES to delete)?: yes\nAborted.\n',
  });
  expect((await run('pki delete', 'YES\n')).out).toContain('CA successfully deleted.\n');
  expect(await run('pki delete')).toMatchObject({ code: 1, err: '[FATAL]: CA not configured.\n' });
});

test('agent: create, list, inspect, print-tls, reconfigure', async () => {
  expect((await run('agent list')).code).toBe(1);
  expect((await run('agent create east')).err).toContain('could not read CA secret');
  await run('pki init --key-algorithm ecdsa-p256');
  expect(await run('agent create east --key-size 2048 -l env=prod')).toEqual({
    code: 0,
    out: 'Agent east created\n',
    err: '',
  });
  expect(await run('agent create east')).toMatchObject({ code: 1, err: '[FATAL]: Agent east exists.\n' });
  const secret = await read('cluster-east');
  expect(secret?.metadata.labels).toEqual({
    'argocd.argoproj.io/secret-type': 'cluster',
    'argocd-agent.argoproj-labs.io/agent-name': 'east',
    env: 'prod',
  });
  expect(secret?.metadata.annotations).toEqual({
    'managed-by': 'argocd-agent',
    'argocd.argoproj.io/skip-reconcile': 'true',
  });
  expect(secret?.text).toMatchObject({
    name: 'east',
    server: 'https://argocd-agent-resource-proxy:9090?agentName=east',
  });
  expect(await run('agent list')).toEqual({ code: 0, out: 'east\n', err: '' });
  expect(await run('agents list -l env=dev')).toEqual({ code: 1, out: 'No agents found.\n', err: '' });

  const certificate = (await run('agent print-tls east')).out;
  expect((await run('agent inspect east')).out).toBe(
    `${JSON.stringify(
      {
        server: 'https://argocd-agent-resource-proxy:9090?agentName=east',
        name: 'east',
        notValidBefore: new X509Certificate(certificate).validFromDate.toISOString().replace('.000', ''),
        notValidAfter: new X509Certificate(certificate).validToDate.toISOString().replace('.000', ''),
        fingerprint: new X509Certificate(certificate).fingerprint256.replaceAll(':', ''),
      },
      undefined,
      1,
    )}\n`,
  );
  expect((await run('agent show east -o text')).out).toMatch(
    /^Server address: {9}https:.*\nServer name: {12}east\nNot valid before: {7}\d{4}-.* \+0000 UTC\n/,
  );
  expect((await run('agent dump-tls east -t ca')).out).toBe((await run('pki dump --cert')).out);
  expect((await run('agent dump-tls east -t key')).out).toContain('PRIVATE KEY');
  expect((await run('agent print-tls east -t x')).err).toContain('unknown TLS asset type "x"');
  expect(await run('agent inspect west')).toEqual({ code: 1, out: '', err: 'No such agent configured: west\n' });
  expect(await run('agent print-tls west')).toEqual({ code: 1, out: '', err: "Agent 'west' is not configured.\n" });

  expect(await run('agent reconfigure east')).toEqual({ code: 0, out: '', err: '' });
  expect((await run('agent reconfigure east --key-size 2048')).err).toContain('only used with --reissue-client-cert');
  const line = '--resource-proxy-server https://x:1 --resource-proxy-username u --resource-proxy-password p';
  expect(await run(`agent reconfigure east --reissue-client-cert --key-algorithm ecdsa-p256 ${line}`)).toEqual({
    code: 0,
    out: '',
    err: 'Setting new server address\nSetting new username\nSetting new password\nCluster configuration saved\n',
  });
  const now = await read('cluster-east');
  expect(now?.text.server).toBe('https://x:1');
  expect(JSON.parse(now?.text.config ?? '')).toMatchObject({ username: 'u', password: 'p' });
  expect((await run('agent print-tls east')).out).not.toBe(certificate);
  expect((await run('agent reconfigure west')).code).toBe(1);

  await run('pki issue principal -u --key-size 2048');
  const data = { 'ca.crt': Buffer.from((await run('pki dump --cert')).out).toString('base64') };
  await cluster.client.create(secrets, { metadata: { namespace: 'other', name: 'own-ca' }, data });
  const given = 'agent create north --tls-from-secret argocd-agent-principal-tls --ca-from-secret other/own-ca';
  expect((await run(given)).out).toBe('Agent north created\n');
  expect((await run('agent create south --tls-from-secret none --ca-from-secret x')).err).toContain(
    'could not read TLS secret argocd/none',
  );
});

test('jwt: create-key, inspect-key, delete-key', async () => {
  expect((await run('jwt inspect-key')).code).toBe(1);
  expect((await run('jwt create-key')).out).toBe(
    'Generating JWT signing key...\nSuccess. JWT signing key created and stored in secret argocd/argocd-agent-jwt\n',
  );
  expect(await run('jwt create-key')).toMatchObject({
    code: 1,
    err: '[FATAL]: JWT secret already exists. Use --upsert to recreate it.\n',
  });
  expect(JSON.parse((await run('jwt inspect-key')).out)).toEqual({
    keyType: 'RSA',
    keyLength: 4096,
    created: expect.stringMatching(/ \+0000$/),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect((await run('jwt inspect-key -o text')).out).toMatch(/^Key type: {9}RSA\nKey length: {7}4096\n/);
  expect(await run('jwt delete-key', 'n\n')).toMatchObject({ code: 0, out: expect.stringContaining('Aborted.\n') });
  expect((await run('jwt delete-key', 'y\n')).out).toContain(
    'JWT signing key secret argocd/argocd-agent-jwt deleted successfully.\n',
  );
  expect(await run('jwt delete-key -f')).toEqual({
    code: 0,
    out: 'JWT secret argocd/argocd-agent-jwt does not exist.\n',
    err: '',
  });
});

test('blocklist tls: add, remove, list', async () => {
  expect((await run('blocklist tls list')).out).toBe('No entries in the blocklist.\n');
  expect((await run('blocklist tls add CD')).out).toBe('Added to blocklist: CD\n');
  expect((await run('blocklist tls add AB')).out).toBe('Added to blocklist: AB\n');
  expect((await run('blocklist tls add AB')).out).toBe('Fingerprint already in blocklist.\n');
  expect((await run('blocklist tls list')).out).toBe('FINGERPRINT\nAB\nCD\n');
  expect((await run('blocklist tls remove CD')).out).toBe('Removed from blocklist: CD\n');
  expect((await run('blocklist tls remove CD')).out).toBe('Fingerprint not found in blocklist.\n');
  const map = await cluster.client.get(configMaps, { namespace: 'argocd', name: 'argocd-agent-tls-blocklist' });
  expect(map?.data).toEqual({ AB: '' });
  expect((await run('blocklist tls add a/b')).code).toBe(1);
});

test('validate says what is missing, in the order of the original', async () => {
  const { code, out, err } = await run('validate principal');
  expect([code, err]).toEqual([1, '[FATAL]: one or more checks failed\n']);
  const [head, ...lines] = out.trimEnd().split('\n');
  expect(head).toBe('Configuration validation results:');
  const names = lines
    .filter((line) => line.startsWith('* '))
    .map((line) => line.slice(2).replace(/( \(.*\))?: .$/u, ''));
  expect(names).toEqual([
    'Verifying Argo CD is running in cluster-scoped mode',
    'Verifying principal public CA certificate exists and is valid',
    'Verifying principal gRPC TLS certificate exists and is valid',
    'Verifying resource proxy TLS certificate exists and is valid',
    'Verifying JWT signing key exists and is parseable',
    "Verifying no Application CRs defined within the principal's Argo CD namespace: argocd",
    'Verifying agent cluster secrets contain correct query parameter on server url',
    "Verifying agent cluster secrets contain the skip-reconcile annotation and that it's set to true",
    'Verifying Argo CD network policy allows for ingress from principal',
    'Verifying deployed Argo CD components on principal',
  ]);
  expect(out).toContain('ERROR: neither ArgoCD CR nor argocd-cm ConfigMap found in namespace argocd\n');
  expect(out).toContain(
    '* Verifying principal gRPC TLS certificate exists and is valid (argocd/argocd-agent-principal-tls): ✅',
  );
  expect(out).toContain('the following agent cluster secrets in argocd are missing the agentName param: cluster-east');
  const agent = await run('check-config agent --principal-context hub --agent-context east --agent-namespace other');
  expect(agent.code).toBe(1);
  expect(agent.out).toContain("ERROR: namespace 'east' not found on principal cluster");
  expect(agent.out).toContain('ERROR: agent certificate not signed by principal CA');
});
