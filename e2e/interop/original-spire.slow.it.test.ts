import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createAuthority } from '../../lib/pki/index.ts';
import { createJwtSigner, issueSvid, startWorkloadEndpoint, type WorkloadEndpoint } from '../../lib/spiffe/testing.ts';
import { application, namespace, type Pair, pairApplications, startPair } from '../pair/index.ts';

// The real argocd-agent at the other end of a connection that SPIRE secures, each with its defaults.

const original = process.env.ARGOCD_AGENT_SPIRE_BIN || undefined;

describe.each([
  { who: 'our agent, principal of argocd-agent', originals: { principal: original } },
  { who: 'agent of argocd-agent, our principal', originals: { agent: original } },
])('$who', { tags: 'argocd-agent-spire' }, ({ originals }) => {
  let pair: Pair;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spire-'));
    pair = await startPair({ idle: true, originals });
  });
  afterAll(async () => {
    await pair?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test.each(['mtls', 'jwt'])('%s', async (method) => {
    const endpointOf = async (name: string) => {
      const endpoint = await startWorkloadEndpoint(join(folder, `${method}-${name}.sock`));
      onTestFinished(() => endpoint.stop());
      return endpoint;
    };
    const [near, far] = [await endpointOf('near'), await endpointOf('far')];
    const authority = await createAuthority({ commonName: 'example.org' });
    const signer = await createJwtSigner('one');
    const give = async (endpoint: WorkloadEndpoint, id: string) => {
      const svid = await issueSvid(authority, id);
      const jwtBundles = { 'spiffe://example.org': [signer] };
      endpoint.give({ id, ...svid, bundle: [authority.certificate], signer, jwtBundles });
    };
    await give(near, 'spiffe://example.org/principal');
    await give(far, `spiffe://example.org/${pair.name}`);
    const args = (endpoint: WorkloadEndpoint, proof: string) => [
      '--destination-based-mapping',
      `--${proof}=`,
      `--spire-agent-socket=${endpoint.address}`,
      `--spire-auth-method=${method}`,
    ];
    const { program, port } = await pair.newPrincipal({ args: args(near, 'auth') });
    onTestFinished(() => void program.stop());
    program.start();
    const agent = await pair.otherAgent({ server: port, args: args(far, 'creds') });
    onTestFinished(() => void agent.stop());
    agent.start();
    const name = `by-${method}`;
    const spec = { destination: { name: pair.name, namespace: 'default' } };
    await pair.hub.client.create(pairApplications, application({ name, namespace, spec }));
    await until(`${name} is on the cluster`, () => pair.managed.client.get(pairApplications, { name, namespace }), {
      details: () => `${program.output.slice(-3_000)}\n---\n${agent.output.slice(-3_000)}`,
    });
    expect(far.tokens > 0).toBe(method === 'jwt');
  });
});
