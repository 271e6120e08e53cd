import { percentile } from '../figures.ts';
import { agentNames, Generator } from '../load/generator.ts';
import { benchOptions } from '../options.ts';
import { usageOf } from '../process-meter.ts';
import { megabytes, print, seconds, table } from '../table.ts';
import { type Hub, startScaleHub } from './hub.ts';
import { type Principal, startPrincipal } from './principal.ts';

const help = `Usage: npm run bench -- connect [--agents N] [--applications N] [--token-key-bits N]

Agents connect all at once to a principal that was just started: until when each is in sync, and what that costs. First they
have nothing and get everything, then the principal is started anew and all come back with what they have. Times count from
the moment when the principal serves agents, and so do CPU seconds; agents that come back wait up to 10 s between attempts.

  --agents N         (1000)
  --applications N   on the hub, for all agents together (5000)
  --token-key-bits N size of the RSA key that signs the two tokens of each login: 2048 or 4096 (2048, as the controller makes them)
`;

/** Runs the benchmark and prints its table. */
export async function benchConnect(args: string[]): Promise<void> {
  const options = benchOptions(args, help, { agents: 1_000, applications: 5_000, 'token-key-bits': 2048 });
  if (options === undefined) {
    return;
  }
  const { agents, applications } = options;
  const perAgent = Math.round(applications / agents);
  const names = agentNames(agents);
  const hub = await startScaleHub(options['token-key-bits'] === 4096 ? 4096 : 2048);
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    print(`A hub with ${agents} agents and ${perAgent} Applications for each is made …`);
    await hub.map(names);
    await hub.fill(names, perAgent);

    const rows: string[][] = [];
    principal = await startPrincipal(hub);
    generator = await Generator.start({
      server: principal.server,
      pki: hub.pki,
      agents: names,
      applications: perAgent,
    });
    rows.push(await measured('new, have nothing', hub, principal, generator, generator.connect()));
    await principal.stop();
    const { port } = new URL(`tcp://${principal.server}`);
    principal = await startPrincipal(hub, { port: Number(port) });
    const began = performance.timeOrigin + performance.now();
    rows.push(await measured('come back, principal restarted', hub, principal, generator, began));
    print(
      table(
        [
          `${agents} agents at once`,
          'first',
          'half',
          '99 %',
          'all',
          'principal CPU',
          'generator CPU',
          'API server CPU',
          'peak RSS',
          'lost',
        ],
        rows,
      ),
    );
  } finally {
    await generator?.stop();
    await principal?.stop();
    await hub.stop();
  }
}

async function measured(
  what: string,
  hub: Hub,
  principal: Principal,
  generator: Generator,
  began: number,
): Promise<string[]> {
  const apiServer = hub.cluster.apiServer.pid;
  const [before, apiBefore] = await Promise.all([generator.count(), usageOf(apiServer)]);
  await generator.allInSync(began);
  const times = [...generator.inSync.values()].map((at) => at - began);
  const [usage, after, apiAfter] = await Promise.all([principal.usage(), generator.count(), usageOf(apiServer)]);
  return [
    what,
    ...[0, 50, 99, 100].map((percent) => seconds(percentile(times, percent) / 1000)),
    seconds(usage.cpuSeconds - principal.atStart.cpuSeconds),
    seconds(after.cpuSeconds - before.cpuSeconds),
    seconds(apiAfter.cpuSeconds - apiBefore.cpuSeconds),
    megabytes(usage.peakRssBytes),
    String(after.losses - before.losses),
  ];
}
