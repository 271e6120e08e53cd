import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { type Command, command } from './command.ts';
import { boolFlag, stringFlag } from './flags.ts';

/** The Argo CD whose kinds and protocols this version was written for and tested with. */
const argocdVersion = 'v3.5.1';

/** What `version` prints: the keys of the originals, no more and no less, for those who parse it. */
export interface VersionInfo {
  readonly name: string;
  readonly version: string;
  readonly gitRevision: string;
  readonly gitStatus: string;
  /** There is no Go in it: says what it runs on. */
  readonly goVersion: string;
  readonly buildDate: string;
  readonly argocdVersion: string;
}

/** The running program's version, from the package it belongs to; the revision and date from the image's build, if known. */
export function versionInfo(name = 'argocd-agent'): VersionInfo {
  const stamp = readPackage(import.meta.dirname);
  return {
    name,
    version: stamp.version,
    gitRevision: stamp.gitRevision ?? 'unknown',
    gitStatus: stamp.gitStatus ?? 'unknown',
    goVersion: `none (Node.js ${process.version})`,
    buildDate: stamp.buildDate ?? new Date(Date.now() - process.uptime() * 1_000).toISOString().replace(/\.\d+Z/, 'Z'),
    argocdVersion,
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
  if (existsSync(file)) {
    return JSON.parse(readFileSync(file, 'utf8')) as Stamp;
  }
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
    ignoresArguments: true,
    run: async ({ short, output }, { stdout }) => {
      const info = versionInfo(name);
      if (short) {
        stdout(`${info.version}\n`);
      } else if (output === 'json') {
        stdout(`${JSON.stringify(info, undefined, 2)}\n`);
      } else if (output === 'yaml') {
        stdout(stringify(info));
      } else {
        stdout(`${name}-${info.version}\n`);
      }
    },
  }) as unknown as Command;
}
