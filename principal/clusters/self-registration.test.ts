import { afterEach, beforeAll, expect, test } from 'vitest';
import { TokenAuthority } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  outdatedFields,
  type ProxyIdentity,
  parseProxyIdentity,
  selfRegisteredAgent,
} from '../../lib/clusters/index.ts';
import { ApiError, type Secret } from '../../lib/kube/index.ts';
import { createLogger, decodeSecret } from '../../lib/ops/index.ts';
import { createAuthority, generateJwtKey, issueCertificate } from '../../lib/pki/index.ts';
import { MappedAgents } from './mapped-agents.ts';
import { SelfRegistration } from './self-registration.ts';

const namespace = 'argocd';
const logger = createLogger({ level: 'fatal' });
const identity: ProxyIdentity = { cert: 'certificate', key: 'key', ca: 'authority' };
const stops: AbortController[] = [];
let [keyOne, keyTwo] = ['', ''];
beforeAll(async () => {
  [keyOne, keyTwo] = await Promise.all([generateJwtKey(2048), generateJwtKey(2048)]);
});
afterEach(() => {
  for (const stop of stops.splice(0)) {
    stop.abort();
  }
});

/** An API server with Secrets, their cache, and the principal's side of them. */
function start(
  given: Secret[] = [],
  options: { identity?: ProxyIdentity | undefined; address?: string; quickTokens?: boolean } = {},
) {
  type Handler = Parameters<MappedAgents['follow']>[0] extends { subscribe(handler: infer H): unknown } ? H : never;
  const stored = new Map<string, Secret>();
  const handlers: Handler[] = [];
  let version = 0;
  let writes = 0;
  const put = (secret: Secret) => {
    const { name } = secret.metadata;
    const old = stored.get(name);
    const now = { ...secret, metadata: { ...secret.metadata, uid: `uid-${name}`, resourceVersion: `${++version}` } };
    stored.set(name, now);
    for (const handler of handlers) {
      if (old === undefined) {
        handler.added?.(now, false);
      } else {
        handler.updated?.(old, now);
      }
    }
    return now;
  };
  const remove = (name: string) => {
    const last = stored.get(name);
    stored.delete(name);
    if (last !== undefined) {
      for (const handler of handlers) {
        handler.deleted?.(last);
      }
    }
  };
  for (const secret of given) {
    put(secret);
  }
  const cache = {
    get: ({ name }: { name: string }) => stored.get(name),
    subscribe: (handler: Handler) => {
      handlers.push(handler);
      for (const secret of stored.values()) {
        handler.added?.(secret, true);
      }
      return () => undefined;
    },
  };
  const shared = { value: 'identity' in options ? options.identity : identity, changed: (): void => undefined };
  const agents = new MappedAgents(logger);
  agents.follow(cache as never);
  const failures: unknown[] = [];
  const registration = new SelfRegistration({
    client: {
      create: (async (_type: unknown, secret: Secret) => {
        writes++;
        if (failures.length > 0) {
          throw failures.shift();
        }
        if (stored.has(secret.metadata.name)) {
          throw new ApiError({ status: 409, reason: 'AlreadyExists', message: '' });
        }
        return put(secret);
      }) as never,
      mergePatch: (async (_type: unknown, { name }: { name: string }, patch: Secret) => {
        writes++;
        const old = stored.get(name);
        if (old === undefined) {
          throw new ApiError({ status: 404, message: '' });
        }
        if (old.metadata.resourceVersion !== patch.metadata.resourceVersion) {
          throw new ApiError({ status: 409, reason: 'Conflict', message: '' });
        }
        return put({ ...old, data: { ...old.data, ...patch.data } });
      }) as never,
    },
    secrets: cache as never,
    agents,
    namespace,
    address: options.address ?? 'proxy:9090',
    identity: {
      get value() {
        return shared.value;
      },
      origin: 'Secret argocd/shared',
      problem: undefined,
      subscribe: (listener) => {
        shared.changed = listener;
        return () => undefined;
      },
    },
    logger,
  });
  const stop = new AbortController();
  stops.push(stop);
  const tokens = TokenAuthority.fromPem(keyOne);
  const quick = { issueResourceProxy: async (agent: string) => agent, isLastingResourceProxy: async () => true };
  void registration.run(options.quickTokens ? quick : tokens, stop.signal);
  const fields = (agent: string) => {
    const secret = stored.get(`cluster-${agent}`);
    if (secret === undefined) {
      return undefined;
    }
    const { name, server, config = '{}' } = decodeSecret(secret);
    return { name, server, config: JSON.parse(config) };
  };
  return { registration, tokens, stored, put, remove, fields, until, shared, failures, writes: () => writes };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const clusterSecret = (agent: string, rest: Partial<Secret['metadata']> = {}, data = {}): Secret => ({
  metadata: {
    name: `cluster-${agent}`,
    namespace,
    labels: {
      'argocd.argoproj.io/secret-type': 'cluster',
      'argocd-agent.argoproj-labs.io/agent-name': agent,
      'argocd-agent.argoproj-labs.io/self-registered-cluster': 'true',
    },
    ...rest,
  },
  data,
});

test("an agent that logs in gets argocd-agent's cluster Secret, once", async () => {
  const { registration, stored, fields, until, tokens, writes } = start();
  registration.loggedIn('edge-1');
  const { name, server, config } = await until('the entry of edge-1', () => fields('edge-1'));
  expect(stored.get('cluster-edge-1')?.metadata).toMatchObject({
    namespace,
    labels: {
      'argocd.argoproj.io/secret-type': 'cluster',
      'argocd-agent.argoproj-labs.io/agent-name': 'edge-1',
      'argocd-agent.argoproj-labs.io/self-registered-cluster': 'true',
    },
    annotations: { 'argocd.argoproj.io/skip-reconcile': 'true', 'managed-by': 'argocd-agent' },
  });
  expect([name, server]).toEqual(['edge-1', 'https://proxy:9090?agentName=edge-1']);
  expect(config).toEqual({
    bearerToken: expect.any(String),
    tlsClientConfig: {
      insecure: false,
      certData: base64('certificate'),
      keyData: base64('key'),
      caData: base64('authority'),
    },
  });
  expect(await tokens.verifyResourceProxy(config.bearerToken)).toBe('edge-1');
  registration.loggedIn('edge-1');
  registration.loggedIn('edge-2');
  await until('the entry of edge-2', () => fields('edge-2'));
  expect(writes()).toBe(2);
});

test('what others have made is never touched, and their Secret of any name is enough', async () => {
  const foreign = clusterSecret(
    'edge-1',
    { labels: { 'argocd.argoproj.io/secret-type': 'cluster' } },
    { config: 'e30=' },
  );
  const takenOver = clusterSecret('edge-2');
  takenOver.metadata.labels = {
    ...takenOver.metadata.labels,
    'app.kubernetes.io/managed-by': 'argocd-pull-integration',
  };
  const renamed = clusterSecret('edge-3', { name: 'my-cluster' });
  const other = clusterSecret('edge-4');
  other.metadata.labels = { ...other.metadata.labels, 'argocd-agent.argoproj-labs.io/agent-name': 'edge-5' };
  const { registration, stored, fields, until, writes } = start([foreign, takenOver, renamed, other]);
  for (const agent of ['edge-1', 'edge-2', 'edge-3', 'edge-4', 'edge-5', 'edge-6']) {
    registration.loggedIn(agent);
  }
  await until('the entry of edge-6', () => fields('edge-6'));
  expect(writes()).toBe(1);
  expect([...stored.keys()].sort()).toEqual([
    'cluster-edge-1',
    'cluster-edge-2',
    'cluster-edge-4',
    'cluster-edge-6',
    'my-cluster',
  ]);
});

test('names that no agent may have register nothing', async () => {
  const { registration, stored, fields, until } = start();
  for (const name of ['', '../x', 'a.b', 'A', 'x'.repeat(64), namespace]) {
    registration.loggedIn(name);
  }
  registration.loggedIn('edge');
  await until('the entry of edge', () => fields('edge'));
  expect([...stored.keys()]).toEqual(['cluster-edge']);
});

test('a token that is bad, of another agent or of a former key is replaced; a good one stays', async () => {
  const { registration, fields, until, tokens, put, stored, writes } = start([
    clusterSecret('edge-1', {}, { config: base64('["no config"]') }),
    clusterSecret(
      'edge-2',
      {},
      { config: base64(JSON.stringify({ bearerToken: 'bad', tlsClientConfig: { serverName: 'x' } })) },
    ),
  ]);
  const tokenOf = (agent: string): string => fields(agent)?.config.bearerToken ?? '';
  // Without a login: the Secrets of an earlier process are corrected.
  await until(() => tokenOf('edge-1').length > 10 && tokenOf('edge-2').length > 10);
  expect(fields('edge-2')?.config.tlsClientConfig).toMatchObject({ serverName: 'x', insecure: false });
  const [one, two] = [tokenOf('edge-1'), tokenOf('edge-2')];
  const swapped = stored.get('cluster-edge-1') as Secret;
  put({ ...swapped, data: { ...swapped.data, config: base64(JSON.stringify({ bearerToken: two })) } });
  registration.loggedIn('edge-1');
  await until(() => tokenOf('edge-1') !== two);
  expect(await tokens.verifyResourceProxy(tokenOf('edge-1'))).toBe('edge-1');
  const before = { one: tokenOf('edge-1'), writes: writes() };
  registration.renew();
  registration.loggedIn('edge-3');
  await until('the entry of edge-3', () => fields('edge-3'));
  expect([tokenOf('edge-1'), tokenOf('edge-2'), writes()]).toEqual([before.one, two, before.writes + 1]);
  tokens.rotate(keyTwo);
  expect(await tokens.verifyResourceProxy(one)).toBe('edge-1');
  registration.renew();
  await until(() => tokenOf('edge-1') !== before.one && tokenOf('edge-2') !== two);
});

test('another shared certificate or address goes into all Secrets at once', async () => {
  const { shared, registration, fields, until } = start([clusterSecret('edge-1')], { address: 'proxy.example:443' });
  registration.loggedIn('edge-2');
  await until(() => Boolean(fields('edge-1')?.server && fields('edge-2')));
  expect(fields('edge-1')?.server).toBe('https://proxy.example:443?agentName=edge-1');
  shared.value = { ...identity, cert: 'newer' };
  shared.changed();
  for (const agent of ['edge-1', 'edge-2']) {
    await until(() => fields(agent)?.config.tlsClientConfig.certData === base64('newer'));
  }
});

test('who comes before the shared certificate is registered when it is there', async () => {
  const { shared, registration, fields, until } = start([], { identity: undefined });
  registration.loggedIn('edge-1');
  shared.value = identity;
  shared.changed();
  await until('the entry of edge-1', () => fields('edge-1'));
});

test('a failed write is repeated; a Secret that is removed stays so until its agent logs in again', async () => {
  const { failures, registration, fields, until, remove } = start();
  failures.push(new ApiError({ status: 500, message: 'no' }), new ApiError({ status: 403, message: 'no' }));
  registration.loggedIn('edge-1');
  await until('the entry of edge-1', () => fields('edge-1'));
  remove('cluster-edge-1');
  registration.renew();
  registration.loggedIn('edge-2');
  await until('the entry of edge-2', () => fields('edge-2'));
  expect(fields('edge-1')).toBeUndefined();
  registration.loggedIn('edge-1');
  await until('the entry of edge-1', () => fields('edge-1'));
});

test('a flood of names ends at a limit and does not affect registered agents', async () => {
  const { registration, stored, until, fields } = start([clusterSecret('edge-1')], { quickTokens: true });
  for (let n = 0; n < 6_000; n++) {
    registration.loggedIn(`flood-${n}`);
  }
  await until(() => stored.size >= 5_000);
  registration.loggedIn('one-more');
  registration.loggedIn('edge-1');
  await until(() => Boolean(fields('edge-1')?.server));
  expect(stored.size).toBe(5_000);
}, 60_000);

test('the shared Secret needs all three parts, and a cluster Secret that is right needs nothing', async () => {
  const authority = await createAuthority({ commonName: 'ca' });
  const { certificate, key } = await issueCertificate({ authority, commonName: 'argocd', usages: ['client'] });
  const whole = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate };
  expect(parseProxyIdentity(whole, 'hub-ca')).toMatchObject({
    cert: certificate,
    key,
    ca: authority.certificate.trim(),
  });
  for (const field of Object.keys(whole)) {
    expect(() => parseProxyIdentity({ ...whole, [field]: '' }, 'hub-ca')).toThrow(
      new RegExp(field.replace('.', '\\.')),
    );
  }
  const { 'ca.crt': ca, ...issued } = whole;
  expect(parseProxyIdentity({ ...issued, 'hub-ca/tls.crt': ca }, 'hub-ca')).toEqual(
    parseProxyIdentity(whole, 'hub-ca'),
  );
  expect(() => parseProxyIdentity(issued, 'hub-ca')).toThrow('has none of the fields ca.crt, hub-ca/ca.crt');
  const { registration, stored, fields, until } = start();
  registration.loggedIn('edge-1');
  const { config } = await until('the entry of edge-1', () => fields('edge-1'));
  const secret = stored.get('cluster-edge-1') as Secret;
  const entry = { agent: 'edge-1', address: 'proxy:9090', identity, token: config.bearerToken };
  expect([selfRegisteredAgent(secret), outdatedFields(secret, entry)]).toEqual(['edge-1', undefined]);
});
