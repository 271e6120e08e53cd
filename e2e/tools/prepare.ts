/* Builds the testbed's tools into the cache, before the tests that need them. */
import { parseArgs } from 'node:util';
import { gitNeeded, hasGit } from '../git/index.ts';
import { buildTool, type ToolName, toolNames } from './index.ts';

const usage = `Usage: node setup.mjs e2e/tools/prepare.ts [--only NAME,NAME]

Builds the programs that the testbed runs, each once, into a cache folder (TOOLS_CACHE, by default
argocd-fleet/tools in the user's cache folder). With empty caches it takes about 15 minutes on 2 cores and 10 GB
of disk, most of it Go's own caches.

  --only   build only these of: ${toolNames.join(', ')}
`;

const values = parse();
const names = values?.only?.split(',').map((name) => name.trim()) ?? toolNames;
const unknown = names.filter((name) => !toolNames.includes(name as ToolName));

if (!values) {
  process.exitCode = 2;
} else if (values.help) {
  process.stdout.write(usage);
} else if (unknown.length > 0) {
  process.stderr.write(`There is no tool ${unknown.join(', ')}.\n\n${usage}`);
  process.exitCode = 2;
} else if (values.only === undefined && !(await hasGit())) {
  // The tests need it, the tools do not.
  process.stderr.write(`${gitNeeded}\n`);
  process.exitCode = 1;
} else {
  process.exitCode = await prepare(names as ToolName[]);
}

function parse() {
  try {
    return parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    return undefined;
  }
}

async function prepare(tools: ToolName[]): Promise<number> {
  const begin = performance.now();
  let built = 0;
  for (const name of tools) {
    try {
      const tool = await buildTool(name);
      if (tool.origin === 'built') {
        built += 1;
      }
      const how = tool.origin === 'built' ? `built in ${tool.seconds.toFixed(0)} s` : tool.origin;
      process.stdout.write(`${name.padEnd(24)} ${tool.version.padEnd(9)} ${how}\n`);
    } catch (error) {
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      return 1;
    }
  }
  const minutes = (performance.now() - begin) / 60_000;
  if (built > 1) {
    process.stdout.write(`${built} tools built in ${minutes.toFixed(1)} minutes\n`);
  }
  return 0;
}
