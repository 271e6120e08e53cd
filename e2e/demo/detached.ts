import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { callTestbed, controlSocket, isProcessAlive, listenForControl, type TestbedStatus } from '../testbed/index.ts';

/** The name under which `npm run testbed -- status --name …` knows a fleet that was left up. */
export const keptName = 'demo';

/** What the process that stays tells the one that started it: text to print, or that the fleet is up. */
type Message = { text: string } | { ready: true };

/** How a demo in the background is reached: by whoever started it, and by `--down`. */
export interface Background {
  /** Tells the process that started it that the fleet is up, and lets it go. */
  ready(): void;
  close(): Promise<void>;
}

/** Makes this process one in the background: what it prints goes to its starter too; `end` is called to end it. */
export async function goToBackground(status: () => TestbedStatus | undefined, end: () => void): Promise<Background> {
  const control = await listenForControl(keptName, { status, stop: end });
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (text: string | Uint8Array) => {
    if (process.connected) {
      process.send?.({ text: String(text) } satisfies Message);
    }
    return write(text);
  };
  // A starter that goes before the fleet is up was killed: nobody knows of the fleet.
  process.once('disconnect', end);
  return {
    ready() {
      process.off('disconnect', end);
      if (!process.connected) {
        return;
      }
      process.send?.({ ready: true } satisfies Message);
      process.disconnect();
    },
    close: () => control.close(),
  };
}

/** Runs the demo in a process of its own, shows what it prints, and returns when the fleet is up; 0 when it is. */
export async function keepUp(colour: boolean): Promise<number> {
  const running = await callTestbed(keptName, 'GET');
  if (running !== undefined) {
    process.stderr.write(`A fleet is ${running ? `up already (process ${running.pid})` : 'being started already'}.\n`);
    process.stderr.write(
      `Its kubeconfigs: npm run testbed -- status --name ${keptName}\nEnd it: npm run demo -- --down\n`,
    );
    return 1;
  }
  const logFile = `${controlSocket(keptName)}.log`;
  await mkdir(dirname(logFile), { recursive: true });
  const log = await open(logFile, 'w');
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--serve', ...(colour ? ['--colour'] : [])], {
    detached: true,
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
  });
  await log.close();
  const interrupt = () => child.kill('SIGTERM');
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) {
    process.on(signal, interrupt);
  }
  const code = await untilReady(child);
  for (const signal of signals) {
    process.off(signal, interrupt);
  }
  if (code !== 0 && code !== 130) {
    const complaints = (await readFile(logFile, 'utf8')).trimEnd().split('\n').slice(-20).join('\n');
    process.stderr.write(`The demo ended early. The end of ${logFile}:\n${complaints}\n`);
  }
  child.unref();
  return code;
}

function untilReady(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.on('message', (message: Message) => {
      if ('text' in message) {
        process.stdout.write(message.text);
      } else {
        resolve(0);
      }
    });
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Ends a fleet that was left up and waits until its last process is gone; 0 also when there was none. */
export async function down(): Promise<number> {
  const owner = (await callTestbed(keptName, 'GET'))?.pid;
  const ended = await callTestbed(keptName, 'DELETE');
  while (owner !== undefined && isProcessAlive(owner)) {
    await sleep(50);
  }
  process.stdout.write(
    ended === undefined
      ? 'No fleet was left up with --keep. A demo in a terminal ends with Ctrl-C there.\n'
      : 'The fleet is down.\n',
  );
  return 0;
}
