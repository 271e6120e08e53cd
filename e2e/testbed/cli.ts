/* Clusters from the command line: `npm run testbed -- up|status|down`. */
import { spawn } from 'node:child_process';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isProcessAlive } from './alive.ts';
import {
  AlreadyRunningError,
  callTestbed,
  controlSocket,
  listenForControl,
  type TestbedStatus,
  testbedStatus,
} from './control.ts';
import { startTestbed, type Testbed } from './testbed.ts';

const usage = `Usage: npm run testbed -- COMMAND [options]

Commands:
  up       Start a hub and managed clusters on this machine: etcd, API server and controller manager each,
           without nodes and Open Cluster Management: npm run demo -- --keep leaves a hub that has them.
           They run until Ctrl-C, or with --detach until "down".
  status   Say what runs, with the kubeconfigs.
  down     End a testbed that runs in the background (or in another terminal).

Options:
  --clusters N   How many managed clusters (up; default 1).
  --detach       Leave it running in the background (up).
  --name NAME    Which testbed, where there are several side by side (default "default").
  -h, --help     This text.
`;

const { values, positionals } = parse();
const name = values.name ?? 'default';
const print = (line: string) => process.stdout.write(`${line}\n`);

if (values.help) {
  print(usage);
} else if (!/^[a-z0-9-]{1,30}$/.test(name)) {
  fail('a name has up to 30 letters a-z, digits and hyphens');
} else if (positionals.length !== 1) {
  fail('say one command: up, status or down');
} else if (positionals[0] === 'up') {
  await up();
} else if (positionals[0] === 'status') {
  await status();
} else if (positionals[0] === 'down') {
  await down();
} else {
  fail(`there is no command ${positionals[0]}`);
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        clusters: { type: 'string' },
        detach: { type: 'boolean' },
        name: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

function fail(reason: string): void {
  process.stderr.write(`${reason}\n\n${usage}`);
  process.exitCode = 2;
}

async function up(): Promise<void> {
  const clusters = Number(values.clusters ?? 1);
  if (!Number.isInteger(clusters) || clusters < 0) {
    return fail('--clusters takes a number');
  }
  if (values.detach) {
    return detach(clusters);
  }

  let testbed: Testbed | undefined;
  const ending = new AbortController();
  const end = () => ending.abort(new Error('asked to end'));
  const control = await listenForControl(name, { status: () => testbed && describe(testbed), stop: end }).catch(
    (error: unknown) => {
      if (!(error instanceof AlreadyRunningError)) {
        throw error;
      }
      process.stderr.write(`${error.message}; end it with: npm run testbed -- down --name ${name}\n`);
    },
  );
  if (!control) {
    process.exitCode = 1;
    return;
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, end);
  }
  try {
    testbed = await startTestbed({ clusters, signal: ending.signal, log: print });
    printStatus(describe(testbed));
    print('Ctrl-C ends it.');
    await new Promise((resolve) => {
      if (ending.signal.aborted) {
        resolve(undefined);
      }
      ending.signal.addEventListener('abort', resolve);
    });
  } catch (error) {
    if (!ending.signal.aborted) {
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      process.exitCode = 1;
    }
  } finally {
    await testbed?.stop();
    await control.close();
  }
}

async function detach(clusters: number): Promise<void> {
  const logFile = `${controlSocket(name)}.log`;
  await mkdir(dirname(logFile), { recursive: true });
  const log = await open(logFile, 'w');
  const args = [fileURLToPath(import.meta.url), 'up', '--name', name, '--clusters', String(clusters)];
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log.fd, log.fd] });
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  for (;;) {
    const running = ended ? undefined : await callTestbed(name, 'GET');
    if (ended) {
      process.stderr.write(await readFile(logFile, 'utf8'));
      process.exitCode = 1;
      break;
    }
    if (running?.pid === child.pid) {
      printStatus(running as TestbedStatus);
      print(`It runs in the background. End it with: npm run testbed -- down --name ${name}`);
      break;
    }
    await setTimeout(200);
  }
  await log.close();
  child.unref();
}

async function status(): Promise<void> {
  const running = await callTestbed(name, 'GET');
  if (running) {
    printStatus(running);
  } else {
    print(running === null ? `testbed ${name} is starting` : `testbed ${name} does not run`);
  }
  if (running === undefined) {
    process.exitCode = 1;
  }
}

async function down(): Promise<void> {
  const owner = (await callTestbed(name, 'GET'))?.pid;
  const ended = await callTestbed(name, 'DELETE');
  while (owner !== undefined && isProcessAlive(owner)) {
    await setTimeout(20);
  }
  print(ended === undefined ? `testbed ${name} does not run` : `testbed ${name} has ended`);
}

function describe({ dir, hub, managed }: Testbed): TestbedStatus {
  return testbedStatus(dir, [hub, ...managed]);
}

function printStatus({ pid, dir, clusters }: TestbedStatus): void {
  print(`testbed ${name}, process ${pid}, in ${dir}`);
  for (const cluster of clusters) {
    const processes = Object.entries(cluster.processes).map(([component, id]) => `${component} ${id}`);
    print(`\n${cluster.name}  ${cluster.server}  (${processes.join(', ')})`);
    print(`  export KUBECONFIG=${cluster.kubeconfig}`);
  }
  print('');
}
