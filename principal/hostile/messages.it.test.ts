import { createPublicKey, randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { evil, other, Stage } from '../../e2e/hostile/index.ts';
import { application, namespace, pairApplications } from '../../e2e/pair/index.ts';
import { generateJwtKey } from '../../lib/pki/index.ts';
import {
  agentSource,
  eventTypes,
  messageEvent,
  objectEvent,
  targets,
  type WireEvent,
  type WireTarget,
} from '../../lib/wire/index.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage?.close());
afterEach(() => stage.expectPeace());

/** An event with arbitrary content. */
function event(target: string, type: string, payload: unknown): WireEvent {
  return messageEvent(target as WireTarget, type, payload, { source: agentSource });
}

/** The same with the payload as text. */
function raw(target: string, type: string, text: string | Buffer): WireEvent {
  return { ...event(target, type, {}), data: Buffer.from(text) };
}

describe.each([
  ['namespace-based', () => stage.hub.principalPort],
  ['destination-based', () => stage.byDestination.port],
] as const)('with %s mapping', (_, port) => {
  test('defect 1: events of an agent about objects of others change nothing and reveal nothing', async () => {
    const all = await stage.hub.hub.client.list(pairApplications);
    const victims = all.filter(({ metadata }) => metadata.namespace !== evil);
    expect(victims).toHaveLength(3);
    const call = await stage.agent({ port: port() });
    const events: WireEvent[] = [];
    for (const { metadata, spec } of victims) {
      const { name, namespace: home = '', uid = '' } = metadata;
      for (const claimed of [home, '', evil, 'nowhere', `../${home}`, `${home}/x`]) {
        for (const marks of [
          {},
          { 'argocd.argoproj.io/namespace-remapped': 'true' },
          { 'argocd.argoproj.io/source-uid': uid },
        ]) {
          const object = {
            metadata: { ...metadata, namespace: claimed, annotations: marks },
            spec: { ...spec, project: 'taken' },
            status: { health: { status: 'Degraded' }, sync: { status: 'OutOfSync' } },
            operation: { sync: { prune: true } },
          };
          for (const type of [eventTypes.statusUpdate, eventTypes.delete, eventTypes.specUpdate, eventTypes.create]) {
            const ids = { resourceId: `${name}_${uid}`, eventId: randomUUID() };
            events.push(objectEvent(targets.application, type, object, { source: agentSource }, ids));
          }
        }
        // As if it were still removing what went to another agent; it never had this one, and cannot know its uid.
        const guessed = { 'argocd.argoproj.io/source-uid': randomUUID() };
        const leaving = {
          ...metadata,
          namespace: claimed,
          annotations: guessed,
          deletionTimestamp: '2026-01-01T00:00:00Z',
        };
        const ids = { resourceId: `${name}_${uid}`, eventId: randomUUID() };
        const reported = { metadata: leaving, spec };
        events.push(objectEvent(targets.application, eventTypes.statusUpdate, reported, { source: agentSource }, ids));
        const error = { resourceName: name, resourceNamespace: claimed, message: 'taken over' };
        events.push(event(targets.application, eventTypes.error, error));
        for (const kind of ['Application', 'AppProject', 'Repository', 'GPGKey']) {
          const told = { kind, name, namespace: claimed, uid };
          events.push(
            event(targets.resourceResync, eventTypes.requestUpdate, { ...told, checksum: null }),
            event(targets.resourceResync, eventTypes.requestUpdate, { ...told, uid: '', checksum: null }),
            event(targets.resourceResync, eventTypes.responseSyncedResource, told),
          );
        }
      }
    }
    await call.sendAll(events);
    const told = call.events.map(({ data }) => Buffer.from(data).toString());
    for (const secret of victims.map(({ spec }) => (spec.source as { path: string }).path)) {
      expect(told.filter((text) => text.includes(secret))).toEqual([]);
    }
  });
});

test('events that a managed agent may not send are refused for every object', async () => {
  const call = await stage.agent();
  const object = {
    metadata: { name: 'guarded', namespace, uid: 'u', labels: {} },
    spec: {},
    data: { password: 'eA==' },
  };
  const events = Object.values(targets)
    .filter((target) => target !== targets.eventProcessed)
    .flatMap((target) =>
      [...Object.values(eventTypes), 'GET', 'POST', 'constructor', '__proto__'].map((type) =>
        event(target, type, object),
      ),
    );
  events.push(event('', eventTypes.create, object), event('__proto__', eventTypes.create, object));
  const refused = await stage.metric('argocd_principal_refused_events_total');
  await call.sendAll(events);
  expect(await stage.metric('argocd_principal_refused_events_total')).toBeGreaterThan(refused + events.length / 2);
  await stage.hub.principal.says(/the peer sent what it may not send.*agent=evil/);
});

test('only a token of this principal, for this use, in force and with its own certificate opens a stream', async () => {
  const refused = await stage.metric('argocd_principal_refused_logins_total');
  const said = stage.hub.principal.output.length;
  const evilOne = await stage.attacker();
  const { accessToken, refreshToken } = await evilOne.login();
  const [header = '', payload = '', signature = ''] = accessToken.split('.');
  const claims = { sub: JSON.stringify({ clientID: evil, mode: 'managed' }), iss: 'argocd-agent-server' };
  const foreign = await signed(claims, await generateJwtKey(2048));
  const publicPem = createPublicKey(stage.hub.jwtKey).export({ type: 'spki', format: 'pem' }).toString();
  const decoded = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string };
  const renamed = { ...decoded, sub: JSON.stringify({ clientID: other, mode: 'managed' }) };
  const tokens: Record<string, string | undefined> = {
    'no token': undefined,
    'an empty token': '',
    'no token at all': 'x',
    'dots only': '..',
    'a refresh token': refreshToken,
    'another name in it': `${header}.${encoded(renamed)}.${signature}`,
    'no signature': `${header}.${payload}.`,
    'algorithm none': new UnsecuredJWT(decoded).encode(),
    'the public key as a shared secret': await new SignJWT(decoded)
      .setProtectedHeader({ alg: 'HS512' })
      .sign(Buffer.from(publicPem)),
    'a key of its own': foreign,
    'a key that it brings along': await signed(claims, await generateJwtKey(2048), {
      jku: 'http://127.0.0.1:1/keys',
      x5u: 'http://127.0.0.1:1/certificate',
    }),
    expired: await signed({ ...claims, exp: 1_000 }, stage.hub.jwtKey),
    'not in force yet': await signed({ ...claims, nbf: 4_000_000_000 }, stage.hub.jwtKey),
    'no end': await signed({ ...claims, exp: undefined }, stage.hub.jwtKey),
    'another issuer': await signed({ ...claims, iss: 'somebody' }, stage.hub.jwtKey),
    'the token of a user of live resources': await signed(
      { ...claims, aud: 'argocd-agent-server-resource-proxy' },
      stage.hub.jwtKey,
    ),
    'no name': await signed({ ...claims, sub: '{}' }, stage.hub.jwtKey),
    'a subject nested deep': await signed({ ...claims, sub: '['.repeat(2_000) }, stage.hub.jwtKey),
    "the principal's namespace as name": await signed(
      { ...claims, sub: JSON.stringify({ clientID: namespace, mode: 'managed' }) },
      stage.hub.jwtKey,
    ),
    'no known mode': await signed(
      { ...claims, sub: JSON.stringify({ clientID: evil, mode: 'principal' }) },
      stage.hub.jwtKey,
    ),
    "another agent's": await signed(
      { ...claims, sub: JSON.stringify({ clientID: other, mode: 'managed' }) },
      stage.hub.jwtKey,
    ),
  };
  for (const [what, token] of Object.entries(tokens)) {
    expect(await evilOne.subscribe(token).end, what).toEqual({ code: 16, message: 'invalid authentication data' });
  }
  expect((await evilOne.refresh(accessToken)).code, 'an access token renews nothing').toBe(16);
  const stranger = await stage.attacker({ name: 'stranger' });
  expect((await stranger.subscribe(accessToken).end).code, 'a token with the certificate of another').toBe(16);
  expect((await stranger.refresh(refreshToken)).code, 'a renewal with the certificate of another').toBe(16);
  const nobody = await stage.attacker({ name: undefined });
  expect((await nobody.login()).code, 'no certificate').toBe(16);
  expect((await nobody.subscribe(accessToken).end).code, 'a token without a certificate').toBe(16);
  expect(await stage.metric('argocd_principal_refused_logins_total')).toBe(refused + Object.keys(tokens).length + 5);
  await stage.hub.principal.says(/An agent is refused.*the client certificate of/, { after: said });
  const endless = await evilOne.subscribe(`${header}.${payload}.${'A'.repeat(50_000)}`).end;
  expect([16, -1], 'a token without end is refused, or not even read').toContain(endless.code);
  // It is the tokens that were wrong, not the way they were shown.
  const good = evilOne.subscribe(await signed(claims, stage.hub.jwtKey));
  await good.settle();
  expect(good.isOver).toBe(false);
});

async function signed(claims: Record<string, unknown>, key: string, header: object = {}): Promise<string> {
  const { importPKCS8 } = await import('jose');
  const now = Math.floor(Date.now() / 1_000);
  return new SignJWT({ iat: now, nbf: now - 5, exp: now + 300, aud: 'argocd-agent-server-access', jti: '1', ...claims })
    .setProtectedHeader({ alg: 'RS512', typ: 'JWT', ...header })
    .sign(await importPKCS8(key, 'RS512'));
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

const long = 'x'.repeat(10_000);
const oddNames = [
  '',
  '.',
  '..',
  '../..',
  'a/b',
  '/',
  'own/status',
  'own?dryRun=All',
  'own%2f..',
  'OWN',
  ' own',
  'own\n',
  '\u0000',
  '\u202eown',
  'ünïcode',
  '🚀',
  '\ud800',
  '__proto__',
  'constructor',
  'toString',
  'x'.repeat(253),
  'x'.repeat(254),
  long,
  'x'.repeat(100_000),
];

test('odd names go nowhere', async () => {
  for (const port of [stage.hub.principalPort, stage.byDestination.port]) {
    const call = await stage.agent({ port });
    const events: WireEvent[] = [];
    for (const name of oddNames) {
      for (const [odd, home] of [
        [name, evil],
        ['own', name],
      ]) {
        const object = {
          metadata: { name: odd, namespace: home, uid: name },
          spec: {},
          status: { health: { status: name } },
        };
        events.push(
          event(targets.application, eventTypes.statusUpdate, object),
          event(targets.application, eventTypes.delete, object),
          event(targets.application, eventTypes.error, { resourceName: odd, resourceNamespace: home, message: name }),
        );
        for (const kind of ['Application', 'AppProject', 'Repository', 'GPGKey', name]) {
          const told = { kind, name: odd, namespace: home, uid: name, checksum: name, digest: name };
          events.push(event(targets.resourceResync, eventTypes.requestUpdate, told));
        }
      }
    }
    await call.sendAll(events);
    expect(call.isOver).toBe(false);
  }
});

const nested = (depth: number, open = '{"a":', close = '}') => `${open.repeat(depth)}1${close.repeat(depth)}`;
const report = (status: string) => `{"metadata":{"name":"own","namespace":"${evil}"},"spec":{},"status":${status}}`;
const oddTexts: Record<string, string | Buffer> = {
  'no JSON': 'certainly not',
  'half of it': report('{}').slice(0, -5),
  'no object': '[]',
  null: 'null',
  'a number': '1',
  'a text': '"x"',
  'a byte order mark': `\ufeff${report('{}')}`,
  'invalid UTF-8': Buffer.concat([
    Buffer.from(report('{"a":"').slice(0, -1)),
    Buffer.from([0xff, 0xfe, 0xc0, 0x80]),
    Buffer.from('"}}'),
  ]),
  'nested 1,000 deep': report(nested(1_000)),
  'nested 5,000 deep': report(nested(5_000)),
  'nested 100,000 deep': report(nested(100_000)),
  'lists nested 5,000 deep': report(`{"conditions":${nested(5_000, '[', ']')}}`),
  'lists nested 200,000 deep': report(nested(200_000, '[', ']')),
  'an operation nested 3,000 deep': report(`{},"operation":${nested(3_000)}`),
  'labels nested deep': `{"metadata":{"name":"own","labels":${nested(3_000)}},"spec":{}}`,
  'huge numbers': report('{"a":1e999,"b":-1e999,"c":123456789012345678901234567890,"d":0.1e-999}'),
  'a prototype': report('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  'a prototype in metadata': `{"metadata":{"name":"own","__proto__":{"uid":"x"},"annotations":{"__proto__":"x"}},"spec":{},"__proto__":{"operation":{}}}`,
  'keys twice': `{"metadata":{"name":"own"},"spec":{},"metadata":{"name":"guarded","namespace":"${other}"}}`,
  'empty objects without end': report(`[${'{},'.repeat(50_000)}{}]`),
  'many keys': report(`{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":1`).join()}}`),
  'a long key': report(`{"conditions":[{"${'k'.repeat(100_000)}":1}]}`),
  'wrong types everywhere': `{"metadata":{"name":7,"labels":[],"annotations":"x","finalizers":{}},"spec":"x","status":[]}`,
};

test('defect 45: malformed JSON payloads do no harm', async () => {
  const call = await stage.agent();
  const types = [eventTypes.statusUpdate, eventTypes.delete, eventTypes.error, eventTypes.create];
  for (const [what, text] of Object.entries(oddTexts)) {
    const events = types.map((type) => raw(targets.application, type, text));
    events.push(
      raw(targets.appProject, eventTypes.specUpdate, text),
      raw(targets.repository, eventTypes.create, text),
      raw(targets.gpgKey, eventTypes.create, text),
      raw(targets.clusterCacheInfoUpdate, eventTypes.clusterCacheInfoUpdate, text),
      raw(targets.resourceResync, eventTypes.requestUpdate, text),
      raw(targets.resourceResync, eventTypes.requestSyncedResourceList, text),
    );
    await call.sendAll(events);
    expect(call.isOver, what).toBe(false);
  }
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("an object that a user of the hub nests deep stays that user's trouble", async () => {
  const { client } = stage.hub.hub;
  const call = await stage.agent();
  for (const depth of [500, 1_500, 2_500, 3_500, 5_000, 9_000]) {
    const spec = { source: { repoURL: 'https://x', path: 'x', helm: { valuesObject: JSON.parse(nested(depth)) } } };
    await client
      .create(pairApplications, application({ name: `deep-${depth}`, namespace: evil, spec }))
      .catch(() => undefined); // the API server has a limit of its own
  }
  await call.settle();
  await stage.exchange();
  for (const { metadata } of await client.list(pairApplications, { namespace: evil })) {
    if (metadata.name !== 'own') {
      await client.delete(pairApplications, { namespace: evil, name: metadata.name });
    }
  }
});
