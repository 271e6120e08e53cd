import { createClient } from '@redis/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ProxyClient } from '../../e2e/live/index.ts';
import {
  application,
  freePort,
  mapAgent,
  namespace,
  type Pair,
  pairApplications,
  put,
  startPair,
} from '../../e2e/pair/index.ts';
import { type Redis, startRedis } from '../../e2e/redis/index.ts';
import { until } from '../../lib/base/testing.ts';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { generateJwtKey, issueCertificate } from '../../lib/pki/index.ts';
import { clusterInfoKey, decodeClusterInfo } from '../../lib/redis/index.ts';

// An agent without cluster Secret registers its cluster; Argo CD reaches it with the data of the Secret.

let pair: Pair;
let redis: Redis;
let proxyPort: number;
const name = 'cluster-cluster1';
const logs = () => ({
  details: () => [pair.principal, pair.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});

beforeAll(async () => {
  const [port, redisPort] = await Promise.all([freePort(), freePort()]);
  proxyPort = port;
  redis = await startRedis({ port: redisPort });
  pair = await startPair({
    idle: true,
    principal: {
      resourceProxy: port,
      redis: redisPort,
      args: [
        `--resource-proxy-address=127.0.0.1:${port}`,
        '--enable-self-cluster-registration',
        '--self-registration-client-cert-secret=argocd-proxy-client',
      ],
    },
  });
  await giveIdentity();
  pair.principal.start();
  pair.agent.start();
  await Promise.all([pair.principal.says(/resource proxy serves/), pair.agent.says(/Connected to the principal/)]);
});
afterAll(async () => {
  await pair?.stop();
  await redis?.stop();
});

async function giveIdentity(): Promise<string> {
  const { authority } = pair;
  const { certificate, key } = await issueCertificate({ authority, commonName: 'argocd', usages: ['client'] });
  const data = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate };
  await put(pair.hub.client, 'argocd-proxy-client', data);
  return Buffer.from(certificate).toString('base64');
}

interface Entry {
  readonly secret: Secret;
  readonly server: string;
  readonly token: string;
  readonly tls: Readonly<Record<'certData' | 'keyData' | 'caData', string>>;
}

async function entry(): Promise<Entry | undefined> {
  const secret = await pair.hub.client.get(secrets, { namespace, name });
  if (secret === undefined) {
    return undefined;
  }
  const { server = '', config = '{}' } = decodeSecret(secret);
  const { bearerToken = '', tlsClientConfig } = JSON.parse(config);
  return { secret, server, token: bearerToken, tls: tlsClientConfig };
}

/** Sends a request like Argo CD, with the data of the Secret. */
async function ask(path: string, { tls, token }: Pick<Entry, 'tls' | 'token'>) {
  const decode = (text: string) => Buffer.from(text, 'base64').toString();
  const client = new ProxyClient(
    proxyPort,
    { certificate: decode(tls.caData), key: '' },
    { certificate: decode(tls.certData), key: decode(tls.keyData) },
  );
  return client.send('GET', path, { headers: token === '' ? {} : { authorization: `Bearer ${token}` } });
}

/** Waits until Argo CD's page of clusters would show this state of the connection. */
async function untilShown(status: string): Promise<void> {
  const client = await createClient({ RESP: 3, socket: { host: '127.0.0.1', port: redis.port } }).connect();
  const key = clusterInfoKey(`https://127.0.0.1:${proxyPort}?agentName=${pair.name}`, 'gzip');
  const look = async () => {
    const value = await client.withTypeMapping({ 36: Buffer }).get(key);
    if (value === null) {
      return undefined;
    }
    return decodeClusterInfo(Buffer.from(value as never), 'gzip').connectionState.status === status;
  };
  try {
    await until(`the cluster is shown as ${status}`, look, logs());
  } finally {
    client.destroy();
  }
}

test("a cluster Secret of the user's is left alone", async () => {
  const { secret } = (await entry()) as Entry;
  const after = pair.principal.output.length;
  await pair.agent.stop();
  pair.agent.start();
  await pair.principal.says(/An agent is connected/, { after });
  expect((await entry())?.secret).toEqual(secret);
});

test('an agent without one is registered, gets its Applications, and its cluster is reached', async () => {
  const { client } = pair.hub;
  await client.delete(secrets, { namespace, name });
  const made = await until('the cluster Secret', entry, logs());
  expect(made.server).toBe(`https://127.0.0.1:${proxyPort}?agentName=${pair.name}`);
  await client.create(pairApplications, application({ name: 'web', namespace: pair.name }));
  await until('it arrives', () => pair.managed.client.get(pairApplications, { name: 'web', namespace }), logs());

  await untilShown('Successful');

  const version = await ask('/version', made);
  expect(version.status).toBe(200);
  const direct = await (await pair.managed.client.request('/version')).body.text();
  expect(JSON.parse(version.text)).toEqual(JSON.parse(direct));
  expect((await ask(`/version?agentName=${pair.name}`, made)).status).toBe(200);
  const other = await ask('/version?agentName=another', made);
  expect([other.status, other.text]).toEqual([
    403,
    'the credentials are those of agent cluster1, the query names agent another',
  ]);
  // The shared certificate alone identifies no agent.
  expect((await ask('/version', { ...made, token: '' })).status).toBe(502);
  expect((await ask('/version', { ...made, token: `${made.token}x` })).status).toBe(401);
});

test('another shared certificate and another key for tokens reach the Secret, and Argo CD goes on', async () => {
  const before = (await entry()) as Entry;
  const certData = await giveIdentity();
  const renewed = await until(
    'the certificate is in the Secret',
    async () => {
      const now = await entry();
      return now?.tls.certData === certData ? now : undefined;
    },
    logs(),
  );
  expect(renewed.token).toBe(before.token);
  await put(pair.hub.client, 'argocd-agent-jwt', { 'jwt.key': await generateJwtKey(2048) });
  const signed = await until(
    'the token is in the Secret',
    async () => {
      const now = await entry();
      return now !== undefined && now.token !== before.token ? now : undefined;
    },
    logs(),
  );
  for (const credentials of [before, signed]) {
    expect((await ask('/version', credentials)).status).toBe(200);
  }
});

test("Argo CD's page of clusters is right when the agent leaves, and after the principal was restarted", async () => {
  await pair.agent.stop('SIGKILL');
  await untilShown('Failed');
  pair.agent.start();
  await untilShown('Successful');
  await pair.principal.stop('SIGKILL');
  await pair.agent.stop('SIGKILL');
  const after = pair.principal.output.length;
  pair.principal.start();
  await pair.principal.says(/resource proxy serves/, { after });
  // The state that the former process wrote is outdated.
  await untilShown('Failed');
  pair.agent.start();
  await untilShown('Successful');
});

test('a Secret that an operator makes instead is enough, and a registered one outlives its agent', async () => {
  const { client } = pair.hub;
  const registered = (await entry()) as Entry;
  await pair.agent.stop('SIGKILL');
  await pair.principal.says(/An agent is disconnected/);
  expect((await entry())?.secret.metadata.uid).toBe(registered.secret.metadata.uid);
  await client.delete(secrets, { namespace, name });
  await mapAgent(client, pair.name);
  const after = pair.principal.output.length;
  pair.agent.start();
  await pair.principal.says(/An agent is connected/, { after });
  expect((await entry())?.token).toBe('');
});
