import { afterAll, beforeAll, expect, test } from 'vitest';
import { startProxiedPair } from '../../e2e/live/index.ts';
import { application, namespace, type Pair, pairApplications, pairAppProjects } from '../../e2e/pair/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { secrets } from '../../lib/kube/index.ts';
import { contextsOf } from '../testing/contexts.ts';
import { runCtl } from '../testing/run-ctl.ts';

// doctor before a real pair: principal and agent as processes.

let pair: Pair;
let sides: readonly string[];
const name = 'east';
const key = { namespace, name: 'repo-shop' };
const encoded = (fields: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(fields).map(([field, text]) => [field, Buffer.from(text).toString('base64')]));

beforeAll(async () => {
  const proxied = await startProxiedPair({ name });
  ({ pair } = proxied);
  const { client } = pair.hub;
  const tlsClientConfig = encoded({
    certData: proxied.credential.certificate,
    keyData: proxied.credential.key,
    caData: pair.authority.certificate,
  });
  const server = `https://127.0.0.1:${proxied.port}?agentName=${name}`;
  const data = encoded({ server, config: JSON.stringify({ tlsClientConfig }) });
  await client.mergePatch(secrets, { namespace, name: `cluster-${name}` }, { data });
  await client.create(pairAppProjects, {
    metadata: { namespace, name: 'shop' },
    spec: { sourceNamespaces: [name], sourceRepos: ['*'], destinations: [{ name, namespace: '*' }] },
  });
  await client.create(secrets, {
    metadata: { ...key, labels: { [wellKnown.secretTypeLabel]: 'repository' } },
    data: encoded({ project: 'shop', url: 'https://git.example.com/shop', username: 'reader', password: 'today' }),
  });
  await client.create(pairApplications, application({ name: 'shop', namespace: name }));
  await until('the cluster has both', async () => {
    const copy = await pair.managed.client.get(pairApplications, { namespace, name: 'shop' });
    return copy !== undefined && (await pair.managed.client.get(secrets, key)) !== undefined;
  });
  sides = [
    `--kubeconfig=${await contextsOf({ hub: pair.hub, east: pair.managed })}`,
    '--principal-context=hub',
    '--agent-context=east',
  ];
});
afterAll(() => pair?.stop());

/** The findings about what goes through the connection, and the round trip. */
async function examined(): Promise<{ ids: string[]; roundTrip: unknown; ms: number }> {
  const began = performance.now();
  const { out, err } = await runCtl(['doctor', name, '-o', 'json', ...sides]);
  const ms = performance.now() - began;
  expect(err).toBe('');
  const { findings, roundTrip } = JSON.parse(out) as { findings: { id: string }[]; roundTrip: unknown };
  const ids = findings
    .map(({ id }) => id)
    .filter((id) => /^(repository|round-trip|change|state|disconnected)/.test(id));
  return { ids, roundTrip, ms };
}

/** Ten seconds after the last write, what differs counts. */
const patient = { timeoutMs: 60_000 };

test('a request goes to the cluster and back, and all that was sent has arrived', async () => {
  await until('nothing to find', async () => {
    const { ids, roundTrip } = await examined();
    expect(ids).toEqual([]);
    expect(roundTrip).toEqual({ ms: expect.any(Number) });
    console.info(`doctor's round trip: ${JSON.stringify(roundTrip)}`);
    return true;
  });
});

test('an agent that hangs, and is still taken for connected, is found out by the request that does not come back', async () => {
  const pid = pair.agent.pid ?? 0;
  process.kill(pid, 'SIGSTOP');
  try {
    const { ids, roundTrip, ms } = await examined();
    expect(ids).toEqual(['round-trip-failed']);
    expect(roundTrip).toEqual({ notTaken: 'it failed' });
    // Less than 5 s, and a busy machine has its part in it.
    expect(ms).toBeLessThan(15_000);
    const { client } = pair.hub;
    await client.mergePatch(secrets, key, { data: encoded({ password: 'tomorrow' }) });
    const spec = { source: { path: 'tomorrow' } };
    await client.mergePatch(pairApplications, { namespace: name, name: 'shop' }, { spec });
    await until(
      'what does not arrive is told',
      async () => {
        const later = await examined();
        expect(later.ids.filter((id) => id !== 'disconnected')).toEqual([
          'round-trip-failed',
          'repository-outdated',
          'change-not-delivered',
        ]);
        return true;
      },
      patient,
    );
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await until('all has arrived', async () => {
    expect((await examined()).ids).toEqual([]);
    return true;
  });
});

test('a certificate that the resource proxy does not take is told as Argo CD would meet it', async () => {
  const secret = { namespace, name: `cluster-${name}` };
  const before = await pair.hub.client.get(secrets, secret);
  const server = Buffer.from(before?.data?.server ?? '', 'base64').toString();
  await pair.hub.client.mergePatch(secrets, secret, {
    data: encoded({ server: server.replace('127.0.0.1', 'localhost.') }),
  });
  try {
    const { ids, roundTrip } = await examined();
    expect(ids).toEqual(['round-trip-failed']);
    expect(roundTrip).toEqual({ notTaken: 'it failed' });
  } finally {
    await pair.hub.client.mergePatch(secrets, secret, { data: { server: before?.data?.server ?? '' } });
  }
});
