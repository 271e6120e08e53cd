import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const stateFile = join(tmpdir(), `argocd-fleet-demo-${userInfo().username}.json`);
const logFile = `${stateFile}.log`;

interface State {
  pid: number;
}

/** What the process that stays tells the one that started it: a line to print, or that the fleet is up. */
type Message = { line: string } | { ready: true };

/** Sends what a detached demo prints to whoever started it, as long as they listen. */
export function relayOutput(): void {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (text: string | Uint8Array) => {
    if (process.connected) process.send?.({ line: String(text) } satisfies Message);
    return write(text);
  };
}

/** Tells the process that started a detached demo that the fleet is up, and lets it go. */
export function announceReady(): void {
  if (!process.connected) return;
  process.send?.({ ready: true } satisfies Message);
  process.disconnect();
}

/** Runs the demo in a process of its own, shows what it prints, and returns when the fleet is up; 0 when it is. */
export async function keepUp(): Promise<number> {
  const running = await readState();
  if (running) {
    process.stderr.write(`A fleet is up already (process ${running.pid}). End it with: npm run demo -- --down\n`);
    return 1;
  }
  const log = await open(logFile, 'w');
  const main = new URL('main.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [main, '--serve'], {
    detached: true,
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
  });
  await log.close();
  await writeFile(stateFile, JSON.stringify({ pid: child.pid ?? 0 } satisfies State));
  const interrupt = () => child.kill('SIGTERM');
  process.once('SIGINT', interrupt);
  const code = await untilReady(child);
  process.off('SIGINT', interrupt);
  if (code !== 0) await rm(stateFile, { force: true });
  child.unref();
  return code;
}

function untilReady(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.on('message', (message: Message) => {
      if ('line' in message) process.stdout.write(message.line);
      else resolve(0);
    });
    child.once('exit', (code) => {
      process.stderr.write(`The demo ended early; its output is in ${logFile}\n`);
      resolve(code ?? 1);
    });
  });
}

/** Ends a fleet that was left up and waits until its last process is gone; 0 also when there was none. */
export async function down(): Promise<number> {
  const state = await readState();
  if (!state) {
    process.stdout.write('No fleet is up.\n');
    await rm(stateFile, { force: true });
    return 0;
  }
  process.kill(state.pid, 'SIGTERM');
  while (isAlive(state.pid)) await sleep(100);
  await rm(stateFile, { force: true });
  process.stdout.write('The fleet is down.\n');
  return 0;
}

async function readState(): Promise<State | undefined> {
  const text = await readFile(stateFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  const state = text === undefined ? undefined : (JSON.parse(text) as State);
  return state && isAlive(state.pid) ? state : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
