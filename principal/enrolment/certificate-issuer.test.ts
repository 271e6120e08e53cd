import { X509Certificate } from 'node:crypto';
import { beforeEach, expect, test, vi } from 'vitest';
import { MemorySecrets } from '../../e2e/memory/index.ts';
import { createSigningRequest } from '../../e2e/ocm/signing-request.ts';
import { until } from '../../lib/base/testing.ts';
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

function issuer(
  options: {
    mapped?: readonly string[];
    authority?: KeyCertificate | undefined;
    stale?: boolean;
    blocked?: ReadonlySet<string>;
  } = {},
) {
  const { mapped = ['edge'], blocked = new Set() } = options;
  return new CertificateIssuer({
    client: hub.api,
    secrets: options.stale === true ? staleCache() : hub.api,
    agents: { has: (agent) => mapped.includes(agent) },
    isBlocked: (fingerprint) => blocked.has(fingerprint),
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
    const first = answers.find(({ status }) => status === 'fulfilled');
    await expect(principal.enroll(token, winners[0] ?? ''), 'the same certificate').resolves.toEqual(
      first?.status === 'fulfilled' ? first.value : undefined,
    );
  },
);

test('when the certificate for a token is blocked, its key gets no other one', async () => {
  const token = await tokenOf('edge');
  const request = await requestOf('edge');
  const blocked = new Set<string>();
  const principal = issuer({ blocked });
  const { certificate } = await principal.enroll(token, request);
  blocked.add(inspectCertificate(certificate).fingerprint);
  await expect(principal.enroll(token, request)).rejects.toEqual(
    refused('the certificate that it got for its token is on the blocklist'),
  );
  blocked.clear();
  await expect(principal.enroll(token, request)).resolves.toMatchObject({ certificate });
});

test('when the authority is replaced, the key of a token gets a certificate of the new one', async () => {
  const token = await tokenOf('edge');
  const request = await requestOf('edge');
  const { certificate } = await issuer().enroll(token, request);
  const replaced = issuer({ authority: await createAuthority({ commonName: 'new' }) });
  const next = await replaced.enroll(token, request);
  expect(next.certificate).not.toBe(certificate);
  await expect(replaced.enroll(token, request)).resolves.toEqual(next);
});

test('a token counts only while its agent has a cluster Secret', async () => {
  const token = await tokenOf('edge');
  const request = await requestOf('edge');
  const mapped = ['edge'];
  const principal = issuer({ mapped });
  await principal.enroll(token, request);
  mapped.pop();
  await expect(principal.enroll(token, request)).rejects.toEqual(refused('it has no cluster Secret'));
});

test('a token ends with the first login with its certificate, and with no other login', async () => {
  const token = await tokenOf('edge');
  await tokenOf('other');
  const request = await requestOf('edge');
  const principal = issuer();
  const { certificate } = await principal.enroll(token, request);
  principal.loggedIn('edge', new X509Certificate((await principal.renew('edge', request)).certificate));
  principal.loggedIn('other', new X509Certificate(certificate));
  await expect(principal.enroll(token, request)).resolves.toMatchObject({ certificate });
  principal.loggedIn('edge', new X509Certificate(certificate));
  await expect(principal.enroll(token, request), 'before the record is gone').rejects.toMatchObject({
    code: 'bad-enrolment',
  });
  await until(() => expect(Object.keys(hub.named(tokensSecret)?.data ?? {})).toEqual(['other']));
  await expect(issuer().enroll(token, request), 'at another principal').rejects.toEqual(refused(undefined));
});

test('a token ends with the login also while its record cannot be removed, and the record goes with the next login', async () => {
  const token = await tokenOf('edge');
  const request = await requestOf('edge');
  const principal = issuer();
  const { certificate } = await principal.enroll(token, request);
  hub.beforeWrite = () => {
    throw new Error('the API server is away');
  };
  principal.loggedIn('edge', new X509Certificate(certificate));
  await expect(principal.enroll(token, request)).rejects.toEqual(refused('its token has been used'));
  hub.beforeWrite = () => undefined;
  principal.loggedIn('edge', new X509Certificate(certificate));
  await until(() => expect(Object.keys(hub.named(tokensSecret)?.data ?? {})).toEqual([]));
});

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
