import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { otherPrograms } from '../other.ts';
import { type ReportedBench, reportOf } from './page.ts';

const help = `Usage: npm run bench -- report [NAME[:OPTIONS] …] [--output FOLDER] [--quick] [--from FOLDER]

Runs benches one after the other, and makes one page of what they print: index.html and report.md, with plots (SVG) of the
figures beside their floors, and what each bench has printed (NAME.txt).

  NAME             propagation, connect, many, live, controller (all of them)
  NAME:OPTIONS     with options of this bench: "propagation:--samples 50 --burst 200"
  --output FOLDER  where the files go (dist/bench)
  --quick          small sizes: minutes instead of hours, figures that say little
  --from FOLDER    runs nothing: the page is made again from NAME.txt of this folder

With PRINCIPAL_CMD, AGENT_CMD or both in the environment, each the path of an argocd-agent of another implementation, each
bench that they concern runs once more with them, and their figures stand beside ours. PRINCIPAL_CMD concerns propagation,
connect and many; AGENT_CMD propagation and live.
`;

interface Subject {
  readonly summary: string;
  readonly quick: string;
  readonly columns: Readonly<Record<string, string>>;
  /** The programs of another implementation that it can run. */
  readonly with: readonly ('principal' | 'agent')[];
}

/** The benches of the report, in its order. */
export const benchSubjects: Readonly<Record<string, Subject>> = {
  propagation: {
    summary: 'Delay of a change each way, and a burst of creations, beside a bare watch and write',
    quick: '--samples 20 --burst 50',
    columns: {},
    with: ['principal', 'agent'],
  },
  connect: {
    summary: 'Many agents connect at once to a principal just started',
    quick: '--agents 50 --applications 250',
    columns: {
      half: 'until half of the agents are in sync',
      all: 'until all agents are in sync',
      'principal CPU': 'CPU of the principal',
      'peak RSS': 'peak memory of the principal',
    },
    with: ['principal'],
  },
  many: {
    summary: 'Many Applications: start, memory, and the cost of one change at a tenth of the size and at the whole',
    quick: '--agents 20 --applications 400 --changes 100',
    columns: {
      start: 'start of the principal',
      'all in sync': 'until all agents are in sync',
      peak: 'peak memory of the principal',
      'CPU/change': 'CPU of the principal for one change',
      'writes/change': 'writes to the hub for one change',
    },
    with: ['principal'],
  },
  live: {
    summary:
      "Live access to a cluster's API server: directly, through the proxy, and through two processes that only copy",
    quick: '--samples 20 --objects 200 --lists 3 --watches 10 --log-megabytes 4',
    columns: {},
    with: ['agent'],
  },
  controller: {
    summary: 'Enrolment of managed clusters, and what little events cost',
    quick: '--clusters 10 --seconds 5',
    columns: {
      'until done': 'until it is done',
      'per cluster': 'writes for each cluster that is enrolled',
    },
    with: [],
  },
};

/** Runs benches and writes the report. */
export async function benchReport(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      output: { type: 'string', default: 'dist/bench' },
      quick: { type: 'boolean', default: false },
      from: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const output = resolve(values.output);
  await mkdir(output, { recursive: true });
  const other = otherPrograms();
  const benches: ReportedBench[] = [];
  for (const chosen of positionals.length > 0 ? positionals : Object.keys(benchSubjects)) {
    const [name = '', ...given] = chosen.split(':');
    const subject = benchSubjects[name];
    if (subject === undefined) {
      throw new Error(`there is no benchmark "${name}" for the report; see npm run bench -- report --help`);
    }
    const options = (given.join(':') || (values.quick ? subject.quick : '')).split(' ').filter((one) => one !== '');
    const take = async (file: string, isOther: boolean) =>
      values.from === undefined
        ? await measured(name, options, join(output, file), isOther)
        : await read(values.from, file);
    const own = await take(`${name}.txt`, false);
    const isConcerned = values.from !== undefined || subject.with.some((program) => other[program] !== undefined);
    benches.push({
      name,
      ...subject,
      command: ['npm run bench --', name, ...options].join(' '),
      own: own ?? '',
      other: isConcerned ? await take(`${name}-other.txt`, true) : undefined,
    });
  }
  const [{ model = 'processor' } = {}] = cpus();
  const report = reportOf(benches, {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} × ${model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node.js ${process.versions.node}`,
    other:
      [other.principal && `principal ${other.principal}`, other.agent && `agent ${other.agent}`]
        .filter(Boolean)
        .join(', ') || undefined,
  });
  await writeFile(join(output, 'index.html'), report.html);
  await writeFile(join(output, 'report.md'), report.markdown);
  for (const [file, svg] of report.pictures) {
    await writeFile(join(output, file), svg);
  }
  process.stdout.write(`${join(output, 'index.html')}\n`);
}

async function read(folder: string, file: string): Promise<string | undefined> {
  return readFile(join(resolve(folder), file), 'utf8').catch(() => undefined);
}

/** Runs one benchmark as a process, shows what it prints, and keeps it. */
async function measured(name: string, options: readonly string[], file: string, isOther: boolean): Promise<string> {
  process.stdout.write(`\n${name}${isOther ? ', the other implementation' : ''} …\n`);
  const script = new URL('../main.ts', import.meta.url).pathname;
  const { PRINCIPAL_CMD, AGENT_CMD, ...env } = process.env;
  const others = isOther ? { PRINCIPAL_CMD, AGENT_CMD } : {};
  const child = spawn(process.execPath, [script, name, ...options], {
    env: { ...env, ...others },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
    process.stdout.write(chunk);
  });
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) {
    throw new Error(`npm run bench -- ${name} ended with code ${code}`);
  }
  await writeFile(file, text);
  return text;
}
