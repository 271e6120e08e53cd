import { createInterface } from 'node:readline';
import { latencyHeading } from '../figures.ts';
import { LoadFleet } from './fleet.ts';
import { help, type LoadOptions, loadOptions } from './options.ts';
import { agentCertificates } from './pki.ts';
import type { Changes, LoadCommand, LoadReport } from './protocol.ts';

/** Runs the load generator with the arguments of its command line (see `--help`) and ends the process. */
export async function runLoad(args: string[]): Promise<never> {
  try {
    await generateLoad(args);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

async function generateLoad(args: string[]): Promise<void> {
  const options = loadOptions(args);
  if (options === 'help') {
    process.stdout.write(help);
    return;
  }
  const certificates = await agentCertificates(options.pki, options.agents);
  const report = options.remote ? tell : watcher(options);
  const fleet = new LoadFleet({ ...options, certificates, report });
  const ended = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => resolve());
    }
  });
  fleet.sendHeartbeats(options.heartbeatSeconds);
  fleet.sendClusterCacheInfo(options.cacheInfoSeconds);
  if (options.remote) {
    tell({ is: 'ready' });
    await Promise.race([ended, obey(fleet)]);
  } else {
    fleet.start();
    await Promise.race([ended, run(fleet, options)]);
  }
  await fleet.stop();
}

function tell(report: LoadReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

/** Does what standard input says, until it ends. */
async function obey(fleet: LoadFleet): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line) as LoadCommand;
    switch (command.do) {
      case 'connect':
        fleet.start();
        break;
      case 'cache-info':
        fleet.sendClusterCacheInfo(command.everySeconds);
        break;
      case 'change':
        void fleet.change(command.perSecond, command.seconds).then((done) => tell({ is: 'changes-done', ...done }));
        break;
      case 'count':
        tell({ is: 'counted', id: command.id, ...fleet.counts() });
    }
  }
}

/** Says what happens in words, for people. */
function watcher({ agents }: LoadOptions): (report: LoadReport) => void {
  const began = performance.now();
  const inSync = new Set<string>();
  const reasons = new Set<string>();
  const elapsed = () => `${((performance.now() - began) / 1000).toFixed(2)} s`;
  return (report) => {
    if (report.is === 'lost' && !reasons.has(report.why)) {
      reasons.add(report.why);
      process.stdout.write(`${elapsed().padStart(10)}  ${report.agent}: ${report.why}\n`);
    }
    if (report.is !== 'in-sync') {
      return;
    }
    inSync.add(report.agent);
    const share = inSync.size / agents.length;
    if (inSync.size === 1 || share === 0.5 || share === 1) {
      process.stdout.write(`${elapsed().padStart(10)}  ${inSync.size} of ${agents.length} agents are in sync\n`);
    }
  };
}

async function run(fleet: LoadFleet, { changes }: LoadOptions): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (fleet.counts().inSync < fleet.size) {
        return;
      }
      clearInterval(timer);
      resolve();
    }, 100);
  });
  if (changes === undefined) {
    return new Promise(() => undefined);
  }
  process.stdout.write(`${described(await fleet.change(changes.perSecond, changes.seconds))}\n`);
}

function described({ made, sent, superseded, acknowledgedMs }: Changes): string {
  const cells = acknowledgedMs.map((ms) => ms.toFixed(1).padStart(9)).join('');
  return (
    `${made} status changes, ${sent} sent, ${superseded} superseded before they were sent\n` +
    `${latencyHeading}\n ${'from sending to acknowledgement'.padEnd(52)}${cells}`
  );
}
