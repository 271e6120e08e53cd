import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { argoCdCrds, installCrds } from '../../e2e/hub/index.ts';
import { applications, appProjects, mapAgent, namespace, put, putTls, startRedis } from '../../e2e/pair/index.ts';
import { type Cluster, startCluster } from '../../e2e/testbed/index.ts';
import { type KubeClient, namespaces } from '../../lib/kube/index.ts';
import {
  createAuthority,
  generateJwtKey,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
} from '../../lib/pki/index.ts';
import { inParallel } from './in-parallel.ts';
import { realisticApplication } from './realistic.ts';

/** As many requests as a small API server works on without queueing. */
const width = 32;
/** Key material of benchmarks, kept between runs in a folder that git ignores. */
const pkiFolder = new URL('../../.cache/bench/pki', import.meta.url).pathname;

/** A hub for a fleet: an API server with what a principal needs. */
export interface Hub {
  readonly cluster: Cluster;
  /** Port of the hub's Redis. */
  readonly redisPort: number;
  /** Folder with the CA of agents' certificates, and with the certificates. */
  readonly pki: string;
  /** Gives agents a namespace and a cluster Secret each. */
  map(agents: readonly string[]): Promise<void>;
  /** Creates so many Applications for each agent, with the status that agents report. */
  fill(agents: readonly string[], perAgent: number): Promise<void>;
  /** Requests that the API server has served so far for one kind, by verb; successful ones only. */
  requests(resource: string): Promise<Readonly<Record<string, number>>>;
  stop(): Promise<void>;
}

/** The name of one of an agent's Applications. */
export function applicationName(index: number): string {
  return `app-${String(index).padStart(4, '0')}`;
}

/**
 * Starts a hub's API server with Argo CD's kinds, its Redis and the principal's key material: RSA keys of the sizes that an
 * installation has.
 */
export async function startHub(tokenKeyBits: 2048 | 4096 = 2048): Promise<Hub> {
  const [cluster, redis, authority, jwtKey] = await Promise.all([
    startCluster({ name: 'hub' }),
    startRedis(),
    cachedAuthority(),
    generateJwtKey(tokenKeyBits),
  ]);
  const { client } = cluster;
  try {
    await client.create(namespaces, { metadata: { name: namespace } });
    await installCrds(client, await argoCdCrds());
    const hosts = ['127.0.0.1', 'localhost'];
    const server = await issueCertificate({
      authority,
      commonName: 'argocd-agent-principal',
      hosts,
      usages: ['server'],
    });
    await Promise.all([
      putTls(client, 'argocd-agent-ca', authority),
      putTls(client, 'argocd-agent-principal-tls', server),
      put(client, 'argocd-agent-jwt', { 'jwt.key': jwtKey }),
      client.create(appProjects, {
        metadata: { name: 'default', namespace },
        spec: {
          sourceRepos: ['*'],
          destinations: [{ name: '*', namespace: '*', server: '*' }],
          sourceNamespaces: ['*'],
          clusterResourceWhitelist: [{ group: '*', kind: '*' }],
        },
      }),
    ]);
    // It would make accounts and certificates in a thousand namespaces, and nothing here needs it.
    await cluster.controllerManager.kill();
  } catch (error) {
    await Promise.all([cluster.stop(), redis.stop()]);
    throw error;
  }
  return {
    cluster,
    redisPort: redis.port,
    pki: pkiFolder,
    async map(agents) {
      await inParallel(agents, width, async (name) => {
        await client.create(namespaces, { metadata: { name } });
        await mapAgent(client, name);
      });
    },
    async fill(agents, perAgent) {
      const all = Array.from({ length: perAgent }, (_, index) => agents.map((agent) => ({ agent, index }))).flat();
      await inParallel(all, width, ({ agent, index }) =>
        client.create(applications, realisticApplication(agent, applicationName(index))),
      );
    },
    requests: (resource) => servedRequests(client, resource),
    async stop() {
      await Promise.all([cluster.stop(), redis.stop()]);
    },
  };
}

/** The authority of the certificates that earlier runs left, as long as it lives for another month. */
async function cachedAuthority(): Promise<KeyCertificate> {
  const [certificateFile, keyFile] = [join(pkiFolder, 'ca.crt'), join(pkiFolder, 'ca.key')];
  try {
    const [certificate, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
    if (inspectCertificate(certificate).notAfter.getTime() > Date.now() + 30 * 24 * 3_600_000)
      return { certificate, key };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const authority = await createAuthority({ commonName: 'argocd-agent-ca@bench' });
  await rm(pkiFolder, { recursive: true, force: true });
  await mkdir(pkiFolder, { recursive: true, mode: 0o700 });
  await writeFile(keyFile, authority.key, { mode: 0o600 });
  await writeFile(certificateFile, authority.certificate);
  return authority;
}

/** Counted by the API server itself, as each request ends. */
async function servedRequests(client: KubeClient, resource: string): Promise<Record<string, number>> {
  const response = await client.request('/metrics');
  const counts: Record<string, number> = {};
  for (const line of (await response.body.text()).split('\n')) {
    if (!line.startsWith('apiserver_request_total{') || !line.includes(`resource="${resource}"`)) continue;
    const verb = /verb="([A-Z]+)"/.exec(line)?.[1];
    if (verb === undefined || !/code="2\d\d"/.test(line)) continue;
    counts[verb] = (counts[verb] ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return counts;
}
