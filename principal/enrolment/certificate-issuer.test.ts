import { beforeEach, expect, test, vi } from 'vitest';
import { MemorySecrets } from '../../e2e/memory/index.ts';
import { createSigningRequest } from '../../e2e/ocm/signing-request.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { createAuthority, inspectCertificate, type KeyCertificate, secretText } from '../../lib/pki/index.ts';
import { CertificateIssuer } from './certificate-issuer.ts';
import { newToken, storeToken, tokensSecret } from './tokens.ts';

const namespace = 'argocd';
const { signal } = new AbortController();
let hub: MemorySecrets;
let authority: KeyCertificate;
beforeEach(async () => {
  hub = new MemorySecrets();
  authority ??= await createAuthority({ commonName: 'ca' });
});

function issuer(options: { mapped?: readonly string[]; authority?: KeyCertificate | undefined; stale?: boolean } = {}) {
  const { mapped = ['edge'] } = options;
  return new CertificateIssuer({
    client: hub.api,
    secrets: options.stale === true ? staleCache() : hub.api,
    agents: { has: (agent) => mapped.includes(agent) },
    namespace,
    authority: { value: 'authority' in options ? options.authority : authority, origin: 'Secret x', problem: 'gone' },
    trust: { value: authority.certificate },
    logger: createLogger({ level: 'fatal' }),
    signal,
  });
}

/** A cache that has heard of no change since. */
function staleCache() {
  const former = hub.named(tokensSecret);
  return { get: () => former };
}

async function tokenOf(agent: string, expires = new Date(Date.now() + 60_000)): Promise<string> {
  const token = newToken(agent);
  await storeToken(hub.api, namespace, { agent, token, expires, signal });
  return token;
}

const requestOf = async (commonName: string) => (await createSigningRequest({ commonName })).request;
const refused = (answer: string | undefined) => expect.objectContaining({ code: 'bad-enrolment', answer });

test('a token gives a certificate for its name', async () => {
  const token = await tokenOf('edge');
  const { certificate, authorities } = await issuer().enroll(token, await requestOf('edge'));
  expect(inspectCertificate(certificate)).toMatchObject({ commonName: 'edge', organizations: [], usages: ['client'] });
  expect(authorities).toBe(authority.certificate);
});

test('the hub stores no token', async () => {
  const token = await tokenOf('edge');
  expect(JSON.stringify(hub.named(tokensSecret))).not.toContain(token);
  expect(secretText(hub.named(tokensSecret)?.data, 'edge')).not.toContain(token.split('.')[1]);
});

test.each([false, true])(
  'of several keys one gets the certificate, and may ask again (a cache behind: %s)',
  async (stale) => {
    const token = await tokenOf('edge');
    const requests = await Promise.all(['edge', 'edge', 'edge', 'edge'].map(requestOf));
    const principal = issuer({ stale });
    const answers = await Promise.allSettled(requests.map((request) => principal.enroll(token, request)));
    const winners = requests.filter((_, index) => answers[index]?.status === 'fulfilled');
    expect(winners).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status === 'rejected')) {
      expect(answer).toMatchObject({ reason: { code: 'bad-enrolment', answer: 'its token has been used' } });
    }
    await expect(principal.enroll(token, winners[0] ?? '')).resolves.toBeTruthy();
  },
);

test('a token is refused when it is not the one that was made', async () => {
  const token = await tokenOf('edge');
  const request = await requestOf('edge');
  const principal = issuer();
  const writes = hub.writes;
  for (const wrong of [
    `${token}x`,
    newToken('edge'),
    newToken('other'),
    '',
    'edge',
    `edge.${'x'.repeat(500)}`,
    '../x.y',
  ]) {
    await expect(principal.enroll(wrong, request), wrong).rejects.toEqual(refused(undefined));
  }
  expect(hub.writes).toBe(writes);
  await tokenOf('edge');
  await expect(principal.enroll(token, request)).rejects.toEqual(refused(undefined));
});

test('a token is refused after its time, and for another name', async () => {
  const late = new Date(Date.now() - 1);
  const request = await requestOf('edge');
  await expect(issuer().enroll(await tokenOf('edge', late), request)).rejects.toEqual(
    refused(`its token has expired at ${late.toISOString()}`),
  );
  const token = await tokenOf('edge');
  await expect(issuer().enroll(token, await requestOf('other'))).rejects.toEqual(
    refused('its request is for another name'),
  );
  await expect(issuer().enroll(token, 'no request')).rejects.toEqual(
    refused('its certificate signing request: is no PKCS #10 request in PEM'),
  );
  // None of it has used the token.
  await expect(issuer().enroll(token, request)).resolves.toBeTruthy();
});

test('records that have expired or cannot be read go with the next token', async () => {
  await tokenOf('late', new Date(Date.now() - 1));
  const { metadata, data = {} } = hub.named(tokensSecret) ?? { metadata: { name: tokensSecret } };
  hub.put({ metadata, data: { ...data, broken: Buffer.from('{').toString('base64') } });
  await tokenOf('edge');
  expect(Object.keys(hub.named(tokensSecret)?.data ?? {})).toEqual(['edge']);
});

test('an agent renews its certificate while it has a cluster Secret, and not too often', async () => {
  const request = await requestOf('edge');
  await expect(issuer({ mapped: [] }).renew('edge', request)).rejects.toEqual(refused('it has no cluster Secret'));
  await expect(issuer().renew('edge', await requestOf('other'))).rejects.toEqual(
    refused('its request is for another name'),
  );
  const principal = issuer();
  vi.useFakeTimers({ toFake: ['performance', 'Date'] });
  try {
    const answers: PromiseSettledResult<unknown>[] = [];
    for (let count = 0; count < 12; count++) {
      answers.push(...(await Promise.allSettled([principal.renew('edge', request)])));
    }
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    expect(answers.at(-1)).toMatchObject({ reason: { code: 'too-often' } });
  } finally {
    vi.useRealTimers();
  }
});

test('without an authority nothing is issued', async () => {
  const principal = issuer({ authority: undefined });
  await expect(principal.renew('edge', await requestOf('edge'))).rejects.toThrow('Secret x: gone');
});
