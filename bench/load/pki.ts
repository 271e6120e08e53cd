import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspectCertificate, isIssuedBy, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';

/** Certificates are issued in batches, so that the threads that make keys are busy and memory is bounded. */
const batch = 64;

/** The client certificates of simulated agents, and the CA that they trust. */
export interface AgentCertificates {
  /** PEM: what the principal's certificate must come from. */
  readonly ca: string;
  of(agent: string): KeyCertificate;
}

/**
 * Client certificates for agents, made once and kept in a folder: `ca.crt`, `ca.key` (the authority that the principal
 * trusts) and `<agent>.crt`, `<agent>.key`. What is missing, ends within a day, or comes from another authority, is issued; that needs
 * `ca.key`.
 */
export async function agentCertificates(folder: string, agents: readonly string[]): Promise<AgentCertificates> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const ca = await readFile(join(folder, 'ca.crt'), 'utf8');
  const key = await readFile(join(folder, 'ca.key'), 'utf8').catch(() => undefined);
  const authority = key === undefined ? undefined : { certificate: ca, key };
  const pairs = new Map<string, KeyCertificate>();
  for (let from = 0; from < agents.length; from += batch) {
    const some = agents.slice(from, from + batch).map(async (agent) => {
      pairs.set(agent, (await found(folder, agent, ca)) ?? (await issue(folder, agent, authority)));
    });
    await Promise.all(some);
  }
  return {
    ca,
    of(agent) {
      const pair = pairs.get(agent);
      if (pair === undefined) {
        throw new Error(`no certificate was prepared for ${agent}`);
      }
      return pair;
    },
  };
}

async function found(folder: string, agent: string, ca: string): Promise<KeyCertificate | undefined> {
  try {
    const [certificate, key] = await Promise.all([
      readFile(join(folder, `${agent}.crt`), 'utf8'),
      readFile(join(folder, `${agent}.key`), 'utf8'),
    ]);
    const { notAfter } = inspectCertificate(certificate);
    const isLasting = notAfter.getTime() > Date.now() + 24 * 3_600_000;
    return isLasting && isIssuedBy(certificate, ca) ? { certificate, key } : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return undefined;
    }
    throw error;
  }
}

async function issue(folder: string, agent: string, authority: KeyCertificate | undefined): Promise<KeyCertificate> {
  if (authority === undefined) {
    throw new Error(`${folder} has no certificate of ${agent} that holds for a day, and no ca.key to issue one`);
  }
  // Elliptic curves, because their signatures cost the generator next to nothing.
  const pair = await issueCertificate({ authority, commonName: agent, usages: ['client'], algorithm: 'p256' });
  await write(join(folder, `${agent}.key`), pair.key);
  await write(join(folder, `${agent}.crt`), pair.certificate);
  return pair;
}

/** Whole or not at all, also when the process is ended. */
async function write(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
