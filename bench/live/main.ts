import { configMaps } from '../../lib/kube/index.ts';
import { latencies, latencyHeading, percentile } from '../figures.ts';
import { benchOptions } from '../options.ts';
import type { Usage } from '../process-meter.ts';
import { megabytes, print } from '../table.ts';
import { type ApiServerRoute, configMap, type Setting, shop, startSetting, talker } from './setting.ts';

const help = `Usage: npm run bench -- live [--samples N] [--objects N] [--lists N] [--watches N] [--log-megabytes N]

One hub, one cluster with its agent. The API server of the cluster is asked directly, through principal and agent, and through
two processes that only copy (what any such way costs at least), in turns within the same run: an object, a list, a log, watches,
and an object while large lists are under way.

  --samples N         requests for an object each way (500)
  --objects N         objects of the list (5000)
  --lists N           lists each way (15)
  --watches N         watches at once (200)
  --log-megabytes N   size of the log (64)
`;

const collection = `/api/v1/namespaces/${shop}/configmaps`;
const object = `${collection}/object-00000`;
const log = `/api/v1/namespaces/${shop}/pods/${talker}/log?timestamps=true`;

/** Runs the benchmark and prints its tables. */
export async function benchLive(args: string[]): Promise<void> {
  const defaults = { samples: 500, objects: 5_000, lists: 15, watches: 200, 'log-megabytes': 64 };
  const options = benchOptions(args, help, defaults);
  if (options === undefined) {
    return;
  }
  const { samples, objects, lists, watches } = options;
  const setting = await startSetting({ objects, logBytes: options['log-megabytes'] * 2 ** 20 });
  try {
    print(`\n${latencyHeading}`);
    await compare(setting, 'GET of an object', samples, read(object), 'ms more');
    await compare(setting, `LIST of ${objects} objects`, lists, read(collection), 'times');
    await compareLogs(setting);
    await beside(setting, samples);
    await openWatches(setting, Math.min(100, watches), watches);
  } finally {
    await setting.stop();
  }
}

/** Asks for a path; the length of the answer. */
const read = (path: string) => async (way: ApiServerRoute) =>
  (await (await way.client.request(path)).body.text()).length;

/** Measures the ways in turns, and what the processes on them spend. */
async function compare(
  setting: Setting,
  what: string,
  count: number,
  ask: (way: ApiServerRoute) => Promise<number>,
  as: 'ms more' | 'times',
): Promise<void> {
  const samples = new Map<string, number[]>();
  const spent = { principal: 0, agent: 0, copiers: 0 };
  let length = 0;
  for (let round = -5; round < count; round++) {
    for (const way of setting.ways) {
      const before = await setting.usage();
      const begin = performance.now();
      length = await ask(way);
      const ms = performance.now() - begin;
      if (round < 0) {
        continue;
      }
      samples.set(way.name, [...(samples.get(way.name) ?? []), ms]);
      const after = await setting.usage();
      if (way.name === 'copied') {
        spent.copiers += seconds(after.copiers) - seconds(before.copiers);
      }
      if (way.name !== 'proxied') {
        continue;
      }
      spent.principal += seconds([after.principal]) - seconds([before.principal]);
      spent.agent += seconds([after.agent]) - seconds([before.agent]);
    }
  }
  for (const [name, times] of samples) {
    print(latencies(`${what}, ${name}`, times));
  }
  const median = (name: ApiServerRoute['name']) => percentile(samples.get(name) ?? [], 50);
  const against = (name: ApiServerRoute['name']) =>
    as === 'times'
      ? `${(median(name) / median('direct')).toFixed(2)} times direct`
      : `${(median(name) - median('direct')).toFixed(1)} ms more than direct`;
  const each = (total: number) => `${((total * 1000) / count).toFixed(1)} ms`;
  print(
    ` ${what}: p50 is ${against('proxied')}; CPU of the principal ${each(spent.principal)}, of the agent ${each(spent.agent)}; ${length} characters`,
  );
  print(` only copied: p50 is ${against('copied')}; CPU of both processes ${each(spent.copiers)}`);
}

const seconds = (usages: readonly Usage[]) => usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);

async function compareLogs(setting: Setting): Promise<void> {
  const rates = new Map<string, number[]>();
  for (let round = 0; round < 3; round++) {
    for (const { name, client } of setting.ways) {
      let bytes = 0;
      const begin = performance.now();
      for await (const chunk of (await client.request(log)).body) {
        bytes += chunk.length;
      }
      const rate = bytes / 2 ** 20 / ((performance.now() - begin) / 1000);
      rates.set(name, [...(rates.get(name) ?? []), rate]);
    }
  }
  for (const [name, times] of rates) {
    print(` log, ${name}: ${times.map((rate) => `${rate.toFixed(1)} MiB/s`).join('  ')}`);
  }
  const { principal, agent } = await setting.usage();
  print(` peak memory so far: principal ${megabytes(principal.peakRssBytes)}, agent ${megabytes(agent.peakRssBytes)}`);
}

/** An object is asked for while four clients list everything again and again. */
async function beside(setting: Setting, count: number): Promise<void> {
  const [, proxied] = setting.ways;
  const stop = new AbortController();
  let lists = 0;
  const lister = async () => {
    while (!stop.signal.aborted) {
      await read(collection)(proxied);
      lists++;
    }
  };
  const listers = [lister(), lister(), lister(), lister()];
  const samples: number[] = [];
  for (let round = 0; round < count / 5; round++) {
    const begin = performance.now();
    await read(object)(proxied);
    samples.push(performance.now() - begin);
  }
  stop.abort();
  await Promise.all(listers);
  print(latencies('GET while four clients list everything, proxied', samples));
  print(` ${lists} lists meanwhile`);
}

/** Opens watches, and changes an object until all have seen it. */
async function openWatches(setting: Setting, ...counts: number[]): Promise<void> {
  const [direct, proxied] = setting.ways;
  const stop = new AbortController();
  const before = await setting.usage();
  let seen = 0;
  let all: () => void = () => undefined;
  let open = 0;
  const watch = async (resourceVersion: string) => {
    const query = new URLSearchParams({ watch: 'true', resourceVersion, allowWatchBookmarks: 'true' });
    const response = await proxied.client.request(`${collection}?${query}`, { signal: stop.signal, timeoutMs: 0 });
    const follow = async () => {
      for await (const chunk of response.body) {
        if (!Buffer.from(chunk).includes('"object-00000"')) {
          continue;
        }
        seen++;
        if (seen === open) {
          all();
        }
      }
    };
    follow().catch((error: unknown) => {
      if (!stop.signal.aborted) {
        throw error;
      }
    });
  };
  for (const count of counts) {
    const { resourceVersion } = await direct.client.listPage(configMaps, { namespace: shop, limit: 1 });
    await Promise.all(Array.from({ length: count - open }, () => watch(resourceVersion)));
    open = count;
    const times: number[] = [];
    for (let round = 0; round < 10; round++) {
      seen = 0;
      const done = new Promise<void>((resolve) => {
        all = resolve;
      });
      const begin = performance.now();
      const patch = { data: { 'key-0': `${count} ${round} ${configMap('x').data['key-1']}` } };
      await direct.client.mergePatch(configMaps, { name: 'object-00000', namespace: shop }, patch);
      await done;
      times.push(performance.now() - begin);
    }
    print(latencies(`a change, until ${count} watches have seen it`, times));
    const now = await setting.usage();
    const more = (side: 'principal' | 'agent') =>
      `${side} ${megabytes(now[side].rssBytes)} (${megabytes(before[side].rssBytes)} before)`;
    print(` memory with ${count} watches: ${more('principal')}, ${more('agent')}`);
  }
  stop.abort();
}
