import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { toolPath } from '../tools/index.ts';
import { type Column, suiteResultsOf, suiteTable } from './table.ts';

const help = `Usage: npm run matrix [-- OPTIONS]

Runs the end-to-end suites with each Argo CD, one after the other, and prints a table in Markdown: tests passed and
seconds. About five minutes each. The exit code is 0 when all tests passed.

Options:
  --argocd FILE   executable of an Argo CD, as many times as you like (default: the one that the testbed builds)
  --suite NAME    only the suites whose file name contains this; as many times as you like
  --help          this text
`;

const { argocd = [], suite = [], help: isHelp } = parse();
if (isHelp) {
  process.stdout.write(help);
} else {
  const columns: Column[] = [];
  for (const binary of argocd.length > 0 ? argocd : [await toolPath('argocd')]) {
    columns.push({ version: await versionOf(binary), suites: await runSuites(binary) });
  }
  process.stdout.write(`${suiteTable(columns)}\n`);
  process.exitCode = columns.every(({ suites }) => suites.every(({ failed }) => failed === 0)) ? 0 : 1;
}

function parse() {
  try {
    return parseArgs({
      options: {
        argocd: { type: 'string', multiple: true },
        suite: { type: 'string', multiple: true },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${help}`);
    process.exit(2);
  }
}

/** What the executable says of itself: `3.5.1`. */
async function versionOf(binary: string): Promise<string> {
  const env = { ...process.env, ARGOCD_BINARY_NAME: 'argocd' };
  const { stdout } = await promisify(execFile)(binary, ['version', '--client', '--short'], { env });
  return /v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? stdout.trim();
}

async function runSuites(binary: string): Promise<Column['suites']> {
  const folder = await mkdtemp(join(tmpdir(), 'matrix-'));
  try {
    const report = join(folder, 'report.json');
    const args = ['run', '--project', 'e2e', ...suite, '--reporter=default', '--reporter=json', '--outputFile', report];
    const run = spawn('vitest', args, {
      env: { ...process.env, ARGOCD_BIN: binary },
      // The table alone is standard output.
      stdio: ['ignore', process.stderr, process.stderr],
    });
    await new Promise((resolve, reject) => run.once('close', resolve).once('error', reject));
    return suiteResultsOf(await readFile(report, 'utf8'));
  } finally {
    await rm(folder, { recursive: true });
  }
}
