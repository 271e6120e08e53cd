import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  admitAgent,
  namespace,
  pairApplications,
  pairAppProjects,
  permissiveProject,
  startEmptyHub,
} from '../../e2e/pair/index.ts';
import { startRedis } from '../../e2e/redis/index.ts';
import { type Cluster, startCluster } from '../../e2e/testbed/index.ts';
import { createAuthority, generateJwtKey, inspectCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { inParallel } from '../in-parallel.ts';
import { type RequestCounts, servedRequests } from '../requests.ts';
import { realisticApplication } from './realistic.ts';

/** As many requests as a small API server works on without queueing. */
const width = 32;
/**
 * An API server keeps every object of a custom kind decoded in its watch cache: 53 kB for each of these Applications, which
 * are 8 kB of JSON; 50,000 of them take 2.7 GB, to which come the last 75 s of changes. Go lets a heap grow to twice what is
 * alive unless it is told otherwise, here through the environment that the API server inherits.
 */
const apiServerMemory = '5GiB';
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
  /** Creates so many Applications for each agent, with the status that agents report; `progress` hears how many, now and then. */
  fill(agents: readonly string[], perAgent: number, progress?: (created: number) => void): Promise<void>;
  /** Requests that the API server has served so far. */
  requests(): Promise<RequestCounts>;
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
export async function startScaleHub(tokenKeyBits: 2048 | 4096 = 2048): Promise<Hub> {
  process.env.GOMEMLIMIT ??= apiServerMemory;
  const [redis, authority, jwtKey] = await Promise.all([startRedis(), cachedAuthority(), generateJwtKey(tokenKeyBits)]);
  const { hub: cluster, stop } = await startEmptyHub({ authority, jwtKey }, () => startCluster({ name: 'hub' }));
  const { client } = cluster;
  await client.create(pairAppProjects, { metadata: { name: 'default', namespace }, spec: permissiveProject });
  // It would make accounts and certificates in a thousand namespaces, and nothing here needs it.
  await cluster.controllerManager.kill();
  return {
    cluster,
    redisPort: redis.port,
    pki: pkiFolder,
    async map(agents) {
      await inParallel(agents, width, (name) => admitAgent(client, name));
    },
    async fill(agents, perAgent, progress = () => undefined) {
      const all = Array.from({ length: perAgent }, (_, index) => agents.map((agent) => ({ agent, index }))).flat();
      let created = 0;
      const told = setInterval(() => progress(created), 15_000);
      try {
        await inParallel(all, width, async ({ agent, index }) => {
          await client.create(pairApplications, realisticApplication(agent, applicationName(index)));
          created++;
        });
      } finally {
        clearInterval(told);
      }
    },
    requests: () => servedRequests(client),
    async stop() {
      await Promise.all([stop(), redis.stop()]);
    },
  };
}

/** The authority of the certificates that earlier runs left, as long as it lives for another month. */
async function cachedAuthority(): Promise<KeyCertificate> {
  const [certificateFile, keyFile] = [join(pkiFolder, 'ca.crt'), join(pkiFolder, 'ca.key')];
  try {
    const [certificate, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
    if (inspectCertificate(certificate).notAfter.getTime() > Date.now() + 30 * 24 * 3_600_000) {
      return { certificate, key };
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw error;
    }
  }
  const authority = await createAuthority({ commonName: 'argocd-agent-ca@bench' });
  await rm(pkiFolder, { recursive: true, force: true });
  await mkdir(pkiFolder, { recursive: true, mode: 0o700 });
  await writeFile(keyFile, authority.key, { mode: 0o600 });
  await writeFile(certificateFile, authority.certificate);
  return authority;
}
