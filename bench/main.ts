import { benchController } from './controller/main.ts';
import { benchIdle } from './idle.ts';
import { benchLive } from './live/main.ts';
import { benchPlan } from './plan/main.ts';
import { benchPropagation } from './propagation.ts';
import { benchReport } from './report/main.ts';
import { benchConnect } from './scale/connect.ts';
import { benchMany } from './scale/many.ts';

const benchmarks: Record<string, { summary: string; run: (args: string[]) => Promise<void> }> = {
  propagation: {
    summary: 'latency of a change each way, and a burst of creations, next to the floor',
    run: benchPropagation,
  },
  connect: {
    summary: '1,000 agents connect at once to a principal just started',
    run: benchConnect,
  },
  idle: {
    summary: 'memory and start of each program at rest',
    run: benchIdle,
  },
  many: {
    summary: '50,000 Applications of 500 agents: start, memory, cost of one change',
    run: benchMany,
  },
  plan: {
    summary: 'what 10,000 clusters with 500,000 Applications need, and which limit comes first',
    run: benchPlan,
  },
  controller: {
    summary: '500 managed clusters are enrolled: time, API writes, what little events cost',
    run: benchController,
  },
  live: {
    summary: "an object, a list, a log and watches of a cluster's API server, directly and through the proxy",
    run: benchLive,
  },
  report: {
    summary: 'runs the main ones, and makes one page with plots of what they print',
    run: benchReport,
  },
};

const [name = '', ...args] = process.argv.slice(2);
const benchmark = benchmarks[name];
if (benchmark) {
  await benchmark.run(args).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))) {
      throw error;
    }
    process.stderr.write(`${error.message}\nUsage: npm run bench -- ${name} --help\n`);
    process.exitCode = 1;
  });
} else {
  const isHelp = ['', '--help', '-h'].includes(name);
  if (!isHelp) {
    process.stderr.write(`There is no benchmark ${JSON.stringify(name)}.\n\n`);
  }
  const list = Object.entries(benchmarks).map(([key, { summary }]) => `  ${key.padEnd(14)}${summary}`);
  process.stdout.write(
    `Usage: npm run bench -- NAME [--help]\n\nFigures, never a pass or a fail:\n${list.join('\n')}\n`,
  );
  process.exitCode = isHelp ? 0 : 1;
}
