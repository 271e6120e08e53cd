/* Brings the testbed's tools into the cache, before the tests that need them. */
import { parseArgs } from 'node:util';
import { inMegabytes } from './download.ts';
import { gitNeeded, hasGit } from './git.ts';
import { cacheFolder, getTools, type Tool, type ToolName, toolNames } from './index.ts';
import { sizeOf } from './size.ts';

const usage = `Usage: node setup.mjs e2e/tools/prepare.ts [--only NAME,NAME]

Brings the programs that the testbed runs, each once, into a cache folder (TOOLS_CACHE, by default
argocd-fleet/tools in the user's cache folder). What their projects have released is downloaded (about 550 MB,
TOOLS_MIRROR names a mirror) and checked, while Go builds the rest. What cannot be downloaded is built, too: with
empty caches all of them take about 12 minutes on 2 idle cores and 9 GB of disk, most of it Go's own caches.
TOOLS_DOWNLOAD=0 builds everything. CONTRIBUTING.md says more.

  --only   only these of: ${toolNames.join(', ')}
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

async function prepare(wanted: readonly ToolName[]): Promise<number> {
  const begin = performance.now();
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => stop.abort(name));
  }
  let coming: readonly Promise<Tool>[] = [];
  try {
    coming = [...getTools(wanted, { signal: stop.signal })].map(async ([name, tool]) => show(name, await tool));
    const tools = await Promise.all(coming);
    const downloaded = tools.filter(({ origin }) => origin === 'downloaded');
    const built = tools.filter(({ origin }) => origin === 'built');
    if (downloaded.length + built.length > 0) {
      const bytes = downloaded.reduce((sum, tool) => sum + tool.bytes, 0);
      const minutes = (performance.now() - begin) / 60_000;
      const disk = inMegabytes(await sizeOf(cacheFolder()));
      process.stdout.write(
        `${downloaded.length} downloaded (${inMegabytes(bytes)} MB) and ${built.length} built in ${minutes.toFixed(1)} minutes; ` +
          `${cacheFolder()} has ${disk} MB\n`,
      );
    }
    return 0;
  } catch (error) {
    // What has begun ends in good order.
    await Promise.allSettled(coming);
    if (stop.signal.aborted) {
      process.kill(process.pid, stop.signal.reason);
    }
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    return 1;
  }
}

function show(name: ToolName, tool: Tool): Tool {
  const seconds = `in ${tool.seconds.toFixed(0)} s`;
  const how = {
    downloaded: `downloaded ${seconds} (${inMegabytes(tool.bytes)} MB)`,
    built: `built ${seconds}`,
    cached: 'cached',
    installed: 'installed',
  };
  process.stdout.write(`${name.padEnd(24)} ${tool.version.padEnd(9)} ${how[tool.origin]}\n`);
  return tool;
}
