import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hash } from 'bcryptjs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  application,
  namespace,
  type Pair,
  type Program,
  pairApplications,
  startMeshProxy,
  startPair,
} from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { createAuthority, issueCertificate, type KeyCertificate } from '../lib/pki/index.ts';
import { createJwtSigner, issueSvid, startWorkloadEndpoint } from '../lib/spiffe/testing.ts';

// Agents that prove who they are in other ways than by the name in a certificate of the hub's authority, with both programs as
// processes. Each test has a principal of its own on the same hub.

let pair: Pair;
let folder: string;
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'authentication-'));
  pair = await startPair({ idle: true });
});
afterAll(async () => {
  await pair?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function startPrincipal(...args: string[]): Promise<{ program: Program; port: number }> {
  const { program, port } = await pair.newPrincipal({ args: ['--destination-based-mapping', ...args] });
  onTestFinished(() => void program.stop());
  program.start();
  return { program, port };
}

async function startAgent(port: number, ...args: string[]): Promise<Program> {
  const agent = await pair.otherAgent({ server: port, args: ['--destination-based-mapping', ...args] });
  onTestFinished(() => void agent.stop());
  agent.start();
  return agent;
}

/** An Application that is made on the hub comes to the cluster. */
async function delivers(name: string, principal: Program, agent: Program): Promise<void> {
  const destination = { name: pair.name, namespace: 'default' };
  await pair.hub.client.create(pairApplications, application({ name, namespace, spec: { destination } }));
  await until(`${name} is on the cluster`, () => pair.managed.client.get(pairApplications, { name, namespace }), {
    details: () => `${principal.output.slice(-3_000)}\n---\n${agent.output.slice(-3_000)}`,
  });
}

/** The SVID of an agent, in the files that its flags name, as SPIFFE's helper keeps them. */
async function writeSvid(id: string, authority: KeyCertificate = pair.authority): Promise<string[]> {
  const svid = await issueSvid(authority, id);
  await writeFile(file('svid_key.pem'), svid.key);
  await writeFile(file('svid.pem'), svid.certificate);
  return [`--tls-client-cert=${file('svid.pem')}`, `--tls-client-key=${file('svid_key.pem')}`];
}

const idOf = (name: string) => `spiffe://example.org/agent/${name}`;

test('userpass: name and password; the agent is out as soon as its user is gone', async () => {
  const users = async (...names: string[]) => {
    const hashed = await hash('secret', 4);
    await writeFile(file('users'), names.map((name) => `${name}:${hashed}\n`).join(''));
  };
  await users(pair.name);
  await writeFile(file('creds'), `${pair.name}:secret`, { mode: 0o600 });
  await writeFile(file('wrong'), `${pair.name}:guess`, { mode: 0o600 });
  const { program, port } = await startPrincipal(`--auth=userpass:${file('users')}`);

  const stranger = await startAgent(port, `--creds=userpass:${file('wrong')}`);
  await program.says(/The name .*cluster1.* or its password is wrong/);
  await stranger.stop();

  const agent = await startAgent(port, `--creds=userpass:${file('creds')}`);
  await delivers('by-password', program, agent);
  const after = program.output.length;
  await users('another');
  await program.says(/An agent is disconnected/, { after });
});

test('mtls:uri: a SPIFFE ID in the certificate; a new SVID is taken without a restart', async () => {
  const { program, port } = await startPrincipal('--auth=mtls:uri:^spiffe://example\\.org/agent/([^/]+)$');
  const foreign = await writeSvid('spiffe://elsewhere.org/agent/cluster1');
  const agent = await startAgent(port, ...foreign);
  await program.says(/URIs: spiffe:\/\/elsewhere\.org\/agent\/cluster1.* does not match/);
  await writeSvid(idOf(pair.name));
  await delivers('by-uri', program, agent);
});

test('header: a proxy that ends TLS says who the client is, and nobody else is believed', async () => {
  const auth = '--auth=header:x-forwarded-client-cert:^.*;URI=spiffe://example\\.org/agent/([^,;/]+)$';
  const { program, port } = await startPrincipal('--insecure-plaintext', auth);
  const server = await issueCertificate({
    authority: pair.authority,
    commonName: 'proxy',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  await program.says(/principal serves agents/);
  const proxy = await startMeshProxy({ server, authority: pair.authority, to: port });
  onTestFinished(() => proxy.stop());

  const past = await startAgent(port, '--creds=header:any', '--insecure-plaintext');
  await program.says(/The request has no header x-forwarded-client-cert/);
  await past.stop();

  const foreign = await writeSvid('spiffe://example.org/other/cluster1');
  const agent = await startAgent(proxy.port, '--creds=header:any', ...foreign);
  await program.says(/The header x-forwarded-client-cert does not match/);
  await writeSvid(idOf(pair.name));
  await delivers('by-header', program, agent);
  expect(program.output).not.toContain('can claim to be any agent');
});

const spire = (address: string, method = 'mtls') => [
  `--spire-agent-socket=${address}`,
  `--spire-auth-method=${method}`,
];

test('the SPIFFE Workload API gives both sides their certificates and the authorities', async () => {
  const [near, far] = [await startWorkloadEndpoint(file('near.sock')), await startWorkloadEndpoint(file('far.sock'))];
  onTestFinished(async () => void (await Promise.all([near.stop(), far.stop()])));
  const domain = await createAuthority({ commonName: 'example.org' });
  const give = async (endpoint: typeof near, id: string, authority = domain) =>
    endpoint.give({ id, ...(await issueSvid(authority, id)), bundle: [authority.certificate] });
  await give(near, 'spiffe://example.org/principal');
  const auth = '--auth=mtls:uri:^spiffe://example\\.org/agent/([^/]+)$';
  const { program, port } = await startPrincipal(auth, ...spire(near.address));
  const agent = await startAgent(port, ...spire(far.address));
  await agent.says(/no identity is registered for this workload/);
  // Its trust domain has another authority than the principal's.
  await give(far, idOf(pair.name), pair.authority);
  await agent.says(/certificate of the principal at .* is not issued by a CA that we trust/);
  await give(far, idOf(pair.name));
  await delivers('by-workload', program, agent);

  // Another authority of the trust domain: first the principal trusts it, then the agent has a certificate of it.
  const next = await createAuthority({ commonName: 'example.org' });
  await give(near, 'spiffe://example.org/principal', next);
  await program.says(/credentials changed and were reloaded/);
  await give(far, idOf(pair.name), next);
  await delivers('by-another', program, agent);
});

test('spiffe-jwt: the agent shows a JWT-SVID; it is out as soon as the key that has signed it is withdrawn', async () => {
  const [near, far] = [
    await startWorkloadEndpoint(file('jwt-near.sock')),
    await startWorkloadEndpoint(file('jwt-far.sock')),
  ];
  onTestFinished(async () => void (await Promise.all([near.stop(), far.stop()])));
  // Two trust domains that are federated.
  const [hub, edge] = [await createAuthority({ commonName: 'hub' }), await createAuthority({ commonName: 'edge' })];
  const [former, signer] = [await createJwtSigner('former'), await createJwtSigner('next')];
  const svid = async (id: string, authority: KeyCertificate) => ({
    id,
    ...(await issueSvid(authority, id)),
    bundle: [authority.certificate],
  });
  const own = await svid('spiffe://hub.test/principal', hub);
  near.give({ ...own, jwtBundles: { 'spiffe://hub.test': [], 'spiffe://edge.test': [former] } });
  const agentSvid = await svid(`spiffe://edge.test/agent/${pair.name}`, edge);
  const federated = { 'spiffe://hub.test': [hub.certificate] };
  far.give({ ...agentSvid, federated, signer: former });
  const auth = '--auth=spiffe-jwt:^spiffe://edge\\.test/agent/([^/]+)$';
  const { program, port } = await startPrincipal(auth, ...spire(near.address, 'jwt'));
  const agent = await startAgent(
    port,
    '--creds=spiffe-jwt:any',
    `--spire-principal-id=${own.id}`,
    ...spire(far.address, 'jwt'),
  );
  await delivers('by-token', program, agent);
  expect(far.tokens).toBe(1);
  const after = program.output.length;
  near.give({ ...own, jwtBundles: { 'spiffe://hub.test': [], 'spiffe://edge.test': [signer] } });
  await program.says(/The key that has signed the JWT-SVID .* is not trusted any more/, { after });
  await program.says(/has no key with the ID that it names/, { after });
  far.give({ ...agentSvid, federated, signer });
  await delivers('by-next-token', program, agent);
});
