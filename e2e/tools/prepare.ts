/* Builds the testbed's tools into the cache: `node e2e/tools/prepare.ts [--only NAME,NAME]`. */
import { parseArgs } from 'node:util';
import { buildTool, type ToolName, toolNames } from './index.ts';

const usage = `Usage: node e2e/tools/prepare.ts [--only NAME,NAME]

Builds the programs that the testbed runs, each once, into a cache folder (TOOLS_CACHE, by default
argocd-fleet/tools in the user's cache folder). With empty caches it takes about 9 minutes on 2 cores.

  --only   build only these of: ${toolNames.join(', ')}
`;

const { values } = parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
const names = values.only?.split(',').map((name) => name.trim()) ?? toolNames;
const unknown = names.filter((name) => !toolNames.includes(name as ToolName));

if (values.help) {
  process.stdout.write(usage);
} else if (unknown.length > 0) {
  process.stderr.write(`There is no tool ${unknown.join(', ')}.\n\n${usage}`);
  process.exitCode = 2;
} else {
  for (const name of names as ToolName[]) {
    try {
      const tool = await buildTool(name);
      const how = tool.origin === 'built' ? `built in ${tool.seconds.toFixed(0)} s` : tool.origin;
      process.stdout.write(`${name.padEnd(24)} ${tool.version.padEnd(9)} ${how}\n`);
    } catch (error) {
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      process.exitCode = 1;
      break;
    }
  }
}
