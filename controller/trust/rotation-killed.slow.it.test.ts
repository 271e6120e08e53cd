import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import { fingerprintsOf, isIssuedBy, secretText } from '../../lib/pki/index.ts';
import { runController } from '../testing/fixture.ts';
import { useHub } from '../testing/hub.ts';
import { mortalClient } from '../testing/mortal.ts';

const hub = useHub(borrowCluster);

const textIn = async (secret: string, key: string) => secretText((await hub.secret(secret))?.data, key) ?? '';
const rotate = (name: string, text: string) =>
  hub.client.mergePatch(
    secrets,
    { namespace: hub.ns, name },
    { metadata: { annotations: { 'apps.open-cluster-management.io/rotate': text } } },
  );

/** The authorities and certificates on a cluster: those of the last work that it has applied. */
interface Held {
  authorities: string;
  certificate: string;
}

async function delivered(cluster: string): Promise<Held> {
  const work = await hub.work(cluster, 'agent');
  const found = (name: RegExp) =>
    work?.spec.workload.manifests.find(({ kind, metadata }) => kind === 'Secret' && name.test(metadata.name)) as
      | Secret
      | undefined;
  return {
    authorities: secretText(found(/^argocd-agent-ca$/)?.data, 'ca.crt') ?? '',
    certificate: secretText(found(/client-cert$/)?.data, 'tls.crt') ?? '',
  };
}

test('killed after every single write of a rotation, agents and principal trust each other at all times', {
  timeout: 600_000,
}, async () => {
  const { a, b, client } = hub;
  const clusters = [a, b];
  await hub.enroll({}, { clientCertificate: 'Generated' });
  const apply = async (held: Map<string, Held>) => {
    for (const cluster of clusters) {
      // In this order the values are those at the time of the report, or newer, as on a cluster.
      const now = await delivered(cluster);
      for (const part of ['crds', 'argocd', 'agent']) {
        await hub.fixture.reportWork(cluster, `argocd-agent-addon-${part}`);
      }
      held.set(cluster, now);
    }
  };
  const held = new Map<string, Held>();
  await apply(held);
  await hub.idle();
  await hub.stop();
  const former = await textIn('argocd-agent-ca', 'tls.crt');
  const formerKey = await textIn('argocd-agent-jwt', 'jwt.key');
  await rotate('argocd-agent-ca', 'now');
  await rotate('argocd-agent-jwt', 'now');

  /** Whether every agent can connect: principal and agent trust each other's certificates. */
  const everybodyIsTrusted = async () => {
    const server = await textIn('argocd-agent-principal-tls', 'tls.crt');
    const trusted = await textIn('argocd-agent-ca-trust', 'ca.crt');
    for (const [cluster, { authorities, certificate }] of held) {
      expect(isIssuedBy(server, authorities), `${cluster} trusts the principal`).toBe(true);
      expect(isIssuedBy(certificate, trusted), `the principal trusts ${cluster}`).toBe(true);
    }
  };
  const isOver = async () => {
    if ((await textIn('argocd-agent-jwt', 'jwt.key')) === formerKey) {
      return false;
    }
    const [now] = fingerprintsOf(await textIn('argocd-agent-ca', 'tls.crt'));
    const isAlone = (authorities: string) => {
      const [first, ...more] = fingerprintsOf(authorities);
      return first === now && more.length === 0;
    };
    if (now === fingerprintsOf(former)[0] || !isAlone(await textIn('argocd-agent-ca-trust', 'ca.crt'))) {
      return false;
    }
    const all = await Promise.all(clusters.map(delivered));
    return all.every(({ authorities }) => isAlone(authorities));
  };
  const lives: string[] = [];
  // The writes of the dead are read from the hub: a response may have come too late for a write that was carried out.
  const made = new Map(
    ['argocd-agent-ca tls.crt', 'argocd-agent-principal-tls tls.crt', 'argocd-agent-jwt jwt.key'].map((name) => [
      name,
      new Set<string>(),
    ]),
  );
  const look = async () => {
    for (const [name, values] of made) {
      const [secret = '', key = ''] = name.split(' ');
      values.add(await textIn(secret, key));
    }
  };
  await look();
  while (!(await isOver())) {
    const { client: mortal, died, writes } = mortalClient(client, { write: 1, when: 'after' });
    const { controller, stop } = runController(mortal);
    let isDead = false;
    died.then(() => {
      isDead = true;
    });
    const isQuiet = () => controller.missing().length === 0 && controller.isIdle;
    let quiet = 0;
    await until('death, or nothing to do until the clusters report', async () => {
      await hub.beat();
      quiet = isQuiet() ? quiet + 1 : 0;
      return isDead || quiet > 8;
    });
    await stop();
    lives.push(...writes);
    await look();
    await everybodyIsTrusted();
    // An idle controller waits for the clusters.
    if (!isDead) {
      await apply(held);
    }
    await everybodyIsTrusted();
    expect(lives.length).toBeLessThan(150);
  }
  // Each object was made once, whichever controller found the request.
  for (const [name, values] of made) {
    expect([...values], name).toHaveLength(2);
  }
  expect(createPublicKey(await textIn('argocd-agent-jwt', 'jwt.previous.pub')).equals(createPublicKey(formerKey))).toBe(
    true,
  );
  expect(lives.length).toBeGreaterThan(8);
});
