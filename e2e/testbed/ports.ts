import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { isProcessAlive } from './alive.ts';
import { userFolder } from './folders.ts';

// Below the range that Linux takes the source ports of connections from (32768 and up): a port that is reserved here
// stays free while its server is down for a restart.
const lowest = 12_000;
const highest = 29_999;

const reserved = new Set<number>();

/**
 * A TCP port that is free on every address of this machine and stays reserved for this process, among all that use this
 * function here, until this process ends. It is below 32768, as the ports of the programs' metrics must be.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    if (!reserve(port)) {
      continue;
    }
    if (await canListen(port)) {
      return port;
    }
    releasePort(port);
  }
  throw new Error(`no free port was found between ${lowest} and ${highest}`);
}

/** Gives a reserved port back. */
export function releasePort(port: number): void {
  reserved.delete(port);
  rmSync(reservationOf(port), { force: true });
}

/** Claims a port by creating a file that names this process; a claim of a process that is gone counts for nothing. */
function reserve(port: number): boolean {
  const file = reservationOf(port);
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw error;
    }
    const holder = holderOf(file);
    // Not taken over but swept away: whoever comes next finds it free, and no two can believe it theirs.
    if (holder > 0 && !isProcessAlive(holder)) {
      rmSync(file, { force: true });
    }
    return false;
  }
  if (reserved.size === 0) {
    process.once('exit', () => reserved.forEach(releasePort));
  }
  reserved.add(port);
  return true;
}

const reservationOf = (port: number) => join(userFolder(), 'ports', String(port));

function canListen(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function holderOf(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    // Released this moment.
    return 0;
  }
}
