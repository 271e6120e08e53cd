import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ArgoObject, application, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { Informer, type KubeClient, namespaces } from '../lib/kube/index.ts';
import { latencies, latencyHeading, percentile } from './figures.ts';
import { inParallel } from './in-parallel.ts';
import { benchOptions } from './options.ts';
import { otherPrograms } from './other.ts';

const help = `Usage: npm run bench -- propagation [--samples N] [--burst N]

One hub, one managed API server, one agent. Measures from before the write on one side to the watch event on the other:
a spec change hub to managed cluster, a status change back, and a burst of creations; each next to the floor, a bare
watch-and-write client between the same two API servers, in turns within the same run.

  --samples N   changes each way (200)
  --burst N     Applications created at once (1000)
`;

/** One of the two things compared: where its Applications are on either side. */
interface Way {
  name: string;
  hub: { client: KubeClient; namespace: string; informer: Informer<ArgoObject> };
  managed: { client: KubeClient; namespace: string; informer: Informer<ArgoObject> };
}

/** Runs the benchmark and prints its tables. */
export async function benchPropagation(args: string[]): Promise<void> {
  const options = benchOptions(args, help, { samples: 200, burst: 1_000 });
  if (options === undefined) {
    return;
  }
  const pair = await startPair({ originals: otherPrograms() });
  const ended = new AbortController();
  try {
    const product = await way(pair, 'product', pair.name, 'argocd', ended.signal);
    const floor = await way(pair, 'floor', 'floor', 'floor', ended.signal);
    const stopFloor = await startFloor(pair, 'floor');
    const ways = [product, floor];
    const down = await sample(ways, 'latency', options.samples, measureSpec);
    const up = await sample(ways, 'latency', options.samples, measureStatus);
    process.stdout.write(`\n${latencyHeading}\n`);
    for (const [what, samples] of [
      ['spec: hub to managed cluster', down],
      ['status: managed cluster to hub', up],
    ] as const) {
      for (const [name, times] of samples) {
        process.stdout.write(`${latencies(`${what}, ${name}`, times)}\n`);
      }
      const ratio = percentile(samples.get('product') ?? [], 50) / percentile(samples.get('floor') ?? [], 50);
      process.stdout.write(` ${what}: p50 is ${ratio.toFixed(2)} times the floor\n`);
    }
    const count = options.burst;
    const bursts = new Map<string, number[]>();
    for (let round = 0; round < 3; round++) {
      for (const which of ways) {
        const ms = await burst(which, count, `burst${round}`);
        bursts.set(which.name, [...(bursts.get(which.name) ?? []), ms]);
      }
    }
    process.stdout.write(
      `\n${count} Applications created at once, until all are on the managed cluster (3 rounds in turns):\n`,
    );
    for (const [name, times] of bursts) {
      process.stdout.write(` ${name.padEnd(10)}${times.map((ms) => `${(ms / 1000).toFixed(2)} s`).join('  ')}\n`);
    }
    const ratio = percentile(bursts.get('product') ?? [], 50) / percentile(bursts.get('floor') ?? [], 50);
    process.stdout.write(` median is ${ratio.toFixed(2)} times the floor\n`);
    await stopFloor();
  } finally {
    ended.abort();
    await pair.stop();
  }
}

async function way(
  pair: Pair,
  name: string,
  hubNamespace: string,
  managedNamespace: string,
  signal: AbortSignal,
): Promise<Way> {
  const side = async (client: KubeClient, namespace: string) => {
    await client.apply(namespaces, { metadata: { name: namespace } }, { fieldManager: 'bench', force: true });
    const informer = new Informer<ArgoObject>({ client, type: pairApplications, namespace });
    void informer.run(signal);
    await informer.synced();
    return { client, namespace, informer };
  };
  return {
    name,
    hub: await side(pair.hub.client, hubNamespace),
    managed: await side(pair.managed.client, managedNamespace),
  };
}

async function startFloor(pair: Pair, namespace: string): Promise<() => Promise<void>> {
  const script = new URL('floor.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, pair.hub.kubeconfig, pair.managed.kubeconfig, namespace], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
}

/** Takes samples of every way in turns, so that the machine's noise falls on all alike. */
async function sample(
  ways: Way[],
  name: string,
  count: number,
  measure: (way: Way, name: string, round: number) => Promise<number>,
): Promise<Map<string, number[]>> {
  for (const { hub, managed } of ways) {
    if (!hub.informer.get({ namespace: hub.namespace, name })) {
      await hub.client.create(pairApplications, application({ name, namespace: hub.namespace }));
    }
    await seen(managed.informer, (a) => a.metadata.name === name);
  }
  const samples = new Map<string, number[]>();
  for (let round = -10; round < count; round++) {
    for (const which of ways) {
      const ms = await measure(which, name, round);
      if (round >= 0) {
        samples.set(which.name, [...(samples.get(which.name) ?? []), ms]);
      }
    }
  }
  return samples;
}

async function measureSpec({ hub, managed }: Way, name: string, round: number): Promise<number> {
  const revision = `r${round}`;
  const arrived = seen(
    managed.informer,
    (a) => (a.spec.source as { targetRevision?: string }).targetRevision === revision,
  );
  const begin = performance.now();
  await hub.client.mergePatch(
    pairApplications,
    { namespace: hub.namespace, name },
    { spec: { source: { targetRevision: revision } } },
  );
  return (await arrived) - begin;
}

async function measureStatus({ hub, managed }: Way, name: string, round: number): Promise<number> {
  const text = `round ${round}`;
  const arrived = seen(hub.informer, (a) => (a.status?.health as { message?: string } | undefined)?.message === text);
  const begin = performance.now();
  await managed.client.mergePatch(
    pairApplications,
    { namespace: managed.namespace, name },
    { status: { health: { status: 'Progressing', message: text } } },
  );
  return (await arrived) - begin;
}

async function burst({ hub, managed }: Way, count: number, prefix: string): Promise<number> {
  const names = Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
  const missing = new Set(names);
  const complete = seen(managed.informer, (a) => missing.delete(a.metadata.name) && missing.size === 0);
  const begin = performance.now();
  await inParallel(names, 50, (name) =>
    hub.client.create(pairApplications, application({ name, namespace: hub.namespace })),
  );
  const ms = (await complete) - begin;
  const gone = absent(managed.informer, new Set(names));
  await Promise.all(names.map((name) => hub.client.delete(pairApplications, { namespace: hub.namespace, name })));
  // The floor does not delete; what it left is removed here. The product's copies go by themselves, too.
  await Promise.all(
    names.map((name) => managed.client.delete(pairApplications, { namespace: managed.namespace, name })),
  );
  await gone;
  return ms;
}

/** The moment at which a watch shows an object that satisfies a condition. */
function seen(informer: Informer<ArgoObject>, accept: (object: ArgoObject) => boolean): Promise<number> {
  return new Promise((resolve) => {
    let unsubscribe: (() => void) | undefined;
    let isDone = false;
    const look = (object: ArgoObject) => {
      if (isDone || !accept(object)) {
        return;
      }
      isDone = true;
      resolve(performance.now());
      unsubscribe?.();
    };
    unsubscribe = informer.subscribe({ added: look, updated: (_, now) => look(now) });
    if (isDone) {
      unsubscribe();
    }
  });
}

function absent(informer: Informer<ArgoObject>, names: Set<string>): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = informer.subscribe({
      deleted: ({ metadata }) => {
        if (names.delete(metadata.name) && names.size === 0) {
          unsubscribe();
          resolve();
        }
      },
    });
  });
}
