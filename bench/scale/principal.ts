import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, namespace } from '../../e2e/pair/index.ts';
import { type SupervisedProcess, spawnSupervised } from '../../e2e/testbed/index.ts';
import { otherPrograms } from '../other.ts';
import type { Hub } from './hub.ts';
import { type Usage, usageOf } from './process-meter.ts';

const entry = new URL('../../bin/argocd-agent.ts', import.meta.url).pathname;

/** The principal under test, a process of its own. */
export interface Principal {
  /** Where agents connect. */
  readonly server: string;
  readonly pid: number;
  /** Seconds from its start until it served agents. */
  readonly startSeconds: number;
  /** What it had used by then. */
  readonly atStart: Usage;
  usage(): Promise<Usage>;
  /** The sum of a metric over all its labels. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Node.js sizes its heap by the memory that it may use: these are its choices in the 2 GiB that the chart gives the
 * principal. On a large machine without a limit it would collect garbage more rarely.
 */
const inTwoGibibytes = '--max-old-space-size=1024 --max-semi-space-size=32';

/**
 * Starts the principal as an installation does, and resolves when it serves agents. `PRINCIPAL_NODE_OPTIONS` replaces the
 * options of its Node.js, for profiles and other limits; `PRINCIPAL_CMD` the whole program.
 * @throws Error with the end of its log when it ends instead
 */
export async function startPrincipal(hub: Hub, args: readonly string[] = []): Promise<Principal> {
  const [port, metricsPort, healthPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const logFile = join(hub.cluster.dir, `principal-${port}.log`);
  const began = performance.now();
  const other = otherPrograms().principal;
  const child = await spawnSupervised(
    other ?? process.execPath,
    [
      ...(other === undefined ? [entry] : []),
      'principal',
      `--kubeconfig=${hub.cluster.kubeconfig}`,
      `--namespace=${namespace}`,
      '--allowed-namespaces=*',
      '--listen-host=127.0.0.1',
      `--listen-port=${port}`,
      `--metrics-port=${metricsPort}`,
      `--healthz-port=${healthPort}`,
      `--redis-server-address=127.0.0.1:${hub.redisPort}`,
      '--auth=mtls:subject:CN=([^,]+)',
      '--enable-resource-proxy=false',
      '--disable-redis-proxy',
      ...args,
    ],
    {
      logFile,
      env: {
        PATH: process.env.PATH,
        HOME: '/nonexistent',
        NODE_OPTIONS: process.env.PRINCIPAL_NODE_OPTIONS ?? inTwoGibibytes,
      },
    },
  );
  await ready(child, `http://127.0.0.1:${healthPort}/healthz`, logFile);
  const startSeconds = (performance.now() - began) / 1000;
  return {
    server: `127.0.0.1:${port}`,
    pid: child.pid,
    startSeconds,
    atStart: await usageOf(child.pid),
    usage: () => usageOf(child.pid),
    async metric(name) {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
    async stop() {
      await child.stop(20_000);
    },
  };
}

async function ready(child: SupervisedProcess, url: string, logFile: string): Promise<void> {
  for (;;) {
    if (!child.running) {
      throw new Error(`the principal ended:\n${(await readFile(logFile, 'utf8')).slice(-4_000)}`);
    }
    const isWell = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (isWell) {
      return;
    }
    await sleep(20);
  }
}
