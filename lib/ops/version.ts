import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { type Command, command } from './command.ts';
import { boolFlag, stringFlag } from './flags.ts';

/** What `version` prints; the keys are those of the originals, with Node in place of Go. */
export interface VersionInfo {
  readonly name: string;
  readonly version: string;
  readonly gitRevision: string;
  readonly gitStatus: string;
  readonly nodeVersion: string;
  readonly buildDate: string;
}

/** The running program's version, from the package it belongs to; the revision and date from the image's build, if known. */
export function versionInfo(name = 'argocd-agent'): VersionInfo {
  const stamp = readPackage(import.meta.dirname);
  return {
    name,
    version: stamp.version,
    gitRevision: stamp.gitRevision ?? 'unknown',
    gitStatus: stamp.gitStatus ?? 'unknown',
    nodeVersion: process.version,
    buildDate: stamp.buildDate ?? new Date(Date.now() - process.uptime() * 1_000).toISOString().replace(/\.\d+Z/, 'Z'),
  };
}

interface Stamp {
  version: string;
  gitRevision?: string;
  gitStatus?: string;
  buildDate?: string;
}

function readPackage(folder: string): Stamp {
  const file = join(folder, 'package.json');
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Stamp;
  const parent = dirname(folder);
  return parent === folder ? { version: 'unknown' } : readPackage(parent);
}

/** The `version` command of an executable. */
export function versionCommand(name: string): Command {
  const flags = {
    short: boolFlag({ usage: 'print the version number only', short: 's' }),
    output: stringFlag({
      usage: 'format: text, yaml or json',
      default: 'text',
      short: 'o',
      check: (value) => (['text', 'yaml', 'json'].includes(value) ? undefined : 'must be one of: text, yaml, json'),
    }),
  };
  return command({
    name: 'version',
    summary: `Print the version of ${name}`,
    flags,
    run: async ({ short, output }, { stdout }) => {
      const info = versionInfo(name);
      if (short) stdout(`${info.version}\n`);
      else if (output === 'json') stdout(`${JSON.stringify(info, undefined, 2)}\n`);
      else if (output === 'yaml') stdout(stringify(info));
      else stdout(`${name}-${info.version}\n`);
    },
  }) as unknown as Command;
}
