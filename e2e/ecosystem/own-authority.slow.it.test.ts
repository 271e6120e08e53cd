import { once } from 'node:events';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { secrets } from '../../lib/kube/index.ts';
import {
  createAuthority,
  generateJwtKey,
  issueCertificate,
  type KeyAlgorithm,
  type KeyCertificate,
  pkcs8Pem,
} from '../../lib/pki/index.ts';
import { application, giveHubMaterial, namespace, type Pair, pairApplications, put, startPair } from '../pair/index.ts';

// A principal and an agent whose authority has any key that TLS knows, in Secrets as cert-manager writes them: `ca.crt`,
// `tls.crt` and `tls.key` together, on both sides, and written over in place when they are renewed.

let pair: Pair;
let jwtKey: string;

beforeAll(async () => {
  jwtKey = await generateJwtKey(2048);
  pair = await startPair({ authority: await createAuthority({ commonName: 'p256', algorithm: 'p256' }) });
  // The type of a Secret does not change any more.
  await pair.managed.client.delete(secrets, { namespace, name: 'argocd-agent-ca' });
});
afterAll(() => pair?.stop());
beforeEach(() =>
  onTestFailed(() => console.error(`${pair.principal.output.slice(-3_000)}\n${pair.agent.output.slice(-3_000)}`)),
);

const tls = { type: 'kubernetes.io/tls' };
const fieldsOf = ({ certificate, key }: KeyCertificate, authority: KeyCertificate) => ({
  'ca.crt': authority.certificate,
  'tls.crt': certificate,
  'tls.key': key,
});

/** Writes everything that an authority issues over what is there. */
async function renew(authority: KeyCertificate, algorithm: KeyAlgorithm): Promise<void> {
  const { hub, managed, name } = pair;
  const client = await issueCertificate({ authority, commonName: name, usages: ['client'], algorithm });
  await Promise.all([
    giveHubMaterial(hub.client, { authority, jwtKey, trust: authority.certificate }),
    put(managed.client, 'argocd-agent-ca', fieldsOf(authority, authority), tls),
    put(managed.client, 'argocd-agent-client-tls', fieldsOf(client, authority), tls),
  ]);
}

/** The name of the authority whose certificate the principal shows a client that trusts only this one. */
async function servedBy(authority: KeyCertificate): Promise<string> {
  const { certificate: cert, key } = await issueCertificate({ authority, commonName: 'x', usages: ['client'] });
  const ca = authority.certificate;
  const socket = connect({ host: '127.0.0.1', port: pair.principalPort, ca, cert, key, ALPNProtocols: ['h2'] });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerX509Certificate()?.issuer ?? '';
  } finally {
    socket.destroy();
  }
}

test.each([
  ['p256', 'own'],
  ['p384', 'own'],
  ['p384', 'PKCS#8'],
  ['p521', 'own'],
  ['ed25519', 'PKCS#8'],
  ['rsa2048', 'own'],
] as const)('with an authority of %s (%s) the agent connects, and delivers', async (algorithm, form) => {
  const commonName = `${algorithm}-${form.replace('#', '')}`;
  const made = await createAuthority({ commonName, algorithm });
  const authority = form === 'own' ? made : { ...made, key: pkcs8Pem(made.key) };
  // Both follow their Secrets while they run; the agent dials again with what is new.
  const said = pair.principal.output.length;
  await renew(authority, algorithm);
  await until(async () => expect(await servedBy(authority)).toBe(`CN=${commonName}`));
  await pair.agent.stop();
  const before = pair.agent.output.length;
  pair.agent.start();
  await pair.agent.says(/Connected to the principal/, { after: before });
  await pair.principal.says(/An agent is connected/, { after: said });
  const name = commonName.toLowerCase();
  await pair.hub.client.create(pairApplications, application({ name, namespace: pair.name }));
  await until('it is delivered', () => pair.managed.client.get(pairApplications, { name, namespace }));
});
