import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { namespaces } from '../../lib/kube/index.ts';
import { createAuthority, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import {
  application,
  giveAgentCredentials,
  mapAgent,
  namespace,
  type Pair,
  pairApplications,
  startPair,
} from '../pair/index.ts';

// What a principal answers those who are not whom they say they are: foreign clients, since our agent would notice most
// of it before it dials.

let pair: Pair;
let mine: KeyCertificate;
let other: KeyCertificate;
beforeAll(async () => {
  pair = await startPair();
  const { authority } = pair;
  mine = await issueCertificate({ authority, commonName: pair.name, usages: ['client'] });
  other = await issueCertificate({ authority, commonName: 'another', usages: ['client'] });
});
afterAll(() => pair?.stop());
beforeEach(() =>
  onTestFailed(() =>
    console.error(`${pair?.principal.output.slice(-4_000)}\n---\n${pair?.agent.output.slice(-2_000)}`),
  ),
);

const refused = { code: status.UNAUTHENTICATED, details: 'invalid authentication data' };

describe('a token of another agent', () => {
  test('opens no stream, and the log names both agents', async () => {
    const said = pair.principal.output.length;
    const { accessToken } = await logIn(other);
    expect(await subscribe(mine, accessToken)).toEqual(refused);
    await pair.principal.says(
      new RegExp(`The token is of agent another, the client certificate of agent ${pair.name}`),
      { after: said },
    );
  });

  test('cannot be renewed, nor used in place of the other kind', async () => {
    const { accessToken, refreshToken } = await logIn(other);
    expect(await failure(renew(mine, refreshToken))).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(await failure(renew(other, accessToken))).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(await subscribe(other, refreshToken)).toEqual(refused);
    expect((await renew(other, refreshToken)).accessToken).toMatch(/^ey/);
  });

  test('that someone made up opens no stream', async () => {
    const { accessToken } = await logIn(mine);
    const [head, claims = '', signature] = accessToken.split('.');
    const forged = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const exp = Math.floor(Date.now() / 1000) + 86_400;
    const later = Buffer.from(JSON.stringify({ ...forged, exp })).toString('base64url');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url');
    for (const token of ['', 'nonsense', `${head}.${later}.${signature}`, `${none}.${claims}.`]) {
      expect(await subscribe(mine, token)).toEqual(refused);
    }
  });
});

describe('a client certificate', () => {
  test('of another authority is refused by name', async () => {
    const stranger = await createAuthority({ commonName: 'someone else' });
    const certificate = await issueCertificate({ authority: stranger, commonName: pair.name, usages: ['client'] });
    await expectTurnedAway(
      certificate,
      /was issued by \W*CN=someone else\W*, which is not a CA that this principal trusts/,
    );
  });

  test('that has expired is refused', async () => {
    const now = new Date(Date.now() - 3 * 24 * 3_600_000);
    const { authority, name } = pair;
    await expectTurnedAway(
      await issueCertificate({ authority, commonName: name, usages: ['client'], lifetimeMs: 3_600_000, now }),
      /the certificate of \W*CN=cluster1\W* expired on/,
    );
  });

  test('that is missing is refused', () => expectTurnedAway(undefined, /the client presented no certificate/));

  test('whose name is no agent’s is refused, and the log says why', async () => {
    const { authority } = pair;
    const said = pair.principal.output.length;
    const certificate = await issueCertificate({ authority, commonName: 'No Such_Name', usages: ['client'] });
    expect(await failure(logIn(certificate))).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: 'authentication failed',
    });
    await pair.principal.says(/No Such_Name.*is no DNS label/, { after: said });
  });

  test('of an agent that the hub does not know connects, gets nothing, and the log says what is missing', async () => {
    const { hub, managed, authority, name } = pair;
    const said = pair.principal.output.length;
    await giveAgentCredentials(managed.client, authority, 'newcomer');
    const agent = await pair.otherAgent();
    try {
      agent.start();
      await pair.principal.says(/no cluster Secret \(label argocd-agent.argoproj-labs.io\/agent-name\)/, {
        after: said,
      });
      await hub.client.create(namespaces, { metadata: { name: 'newcomer' } });
      await hub.client.create(pairApplications, application({ name: 'waiting', namespace: 'newcomer' }));
      const key = { name: 'waiting', namespace };
      expect(await managed.client.get(pairApplications, key)).toBeUndefined();
      await mapAgent(hub.client, 'newcomer');
      await until('it arrives', () => managed.client.get(pairApplications, key));
    } catch (error) {
      throw new Error(`the newcomer: ${agent.output.slice(-3_000)}`, { cause: error });
    } finally {
      await agent.stop('SIGKILL');
      await giveAgentCredentials(managed.client, authority, name);
    }
  });
});

function connect(certificate: KeyCertificate | undefined): Client {
  const root = Buffer.from(pair.authority.certificate);
  const own = certificate && { key: Buffer.from(certificate.key), cert: Buffer.from(certificate.certificate) };
  return new Client(`127.0.0.1:${pair.principalPort}`, credentials.createSsl(root, own?.key, own?.cert));
}

/** One call without a stream, on a connection of its own. */
async function call(certificate: KeyCertificate | undefined, method: string, request: Uint8Array): Promise<Buffer> {
  const client = connect(certificate);
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(
        `/authapi.Authentication/${method}`,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes: Buffer) => bytes,
        request,
        new Metadata(),
        { deadline: Date.now() + 60_000 },
        (error, response) => (error ? reject(error) : resolve(response ?? Buffer.alloc(0))),
      );
    });
  } finally {
    client.close();
  }
}

async function logIn(certificate: KeyCertificate | undefined): Promise<AuthResponse> {
  const request = { method: 'mtls', credentials: {}, mode: 'managed', version: '0.1.0', agentNamespace: namespace };
  return AuthResponse.decode(await call(certificate, 'Authenticate', AuthRequest.encode(request).finish()));
}

async function renew(certificate: KeyCertificate, refreshToken: string): Promise<AuthResponse> {
  const request = RefreshTokenRequest.encode({ refreshToken }).finish();
  return AuthResponse.decode(await call(certificate, 'RefreshToken', request));
}

/** How the principal ends a stream that is opened with a token. */
async function subscribe(certificate: KeyCertificate, token: string): Promise<Pick<ServiceError, 'code' | 'details'>> {
  const client = connect(certificate);
  const metadata = new Metadata();
  metadata.set('authorization', token);
  const path = '/eventstreamapi.EventStream/Subscribe';
  const serialize = (event: Event) => Buffer.from(Event.encode(event).finish());
  try {
    return await new Promise((resolve) => {
      const stream = client.makeBidiStreamRequest(path, serialize, Event.decode, metadata, {
        deadline: Date.now() + 60_000,
      });
      stream.on('data', () => undefined);
      stream.on('error', () => undefined);
      stream.on('status', ({ code, details }) => resolve({ code, details }));
    });
  } finally {
    client.close();
  }
}

const failure = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => 'no failure',
    (error: unknown) => error,
  );

/** The client is told what the certificate must be, the log says what it is. */
async function expectTurnedAway(certificate: KeyCertificate | undefined, logged: RegExp): Promise<void> {
  const said = pair.principal.output.length;
  expect(await failure(logIn(certificate))).toMatchObject({
    code: status.UNAUTHENTICATED,
    details: expect.stringContaining('client certificate'),
  });
  await pair.principal.says(logged, { after: said });
}
