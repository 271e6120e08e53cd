import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { getTool, toolPath } from '../tools/index.ts';

/** OCM's executables that run here. */
export type OcmExecutable = 'registration' | 'placement' | 'work' | 'addon';

/**
 * The command of one of OCM's executables: the part of the tool `ocm` with that name, or that of a folder, which the
 * environment variable `OCM_BIN` names.
 * @throws Error when the folder lacks it
 */
export async function ocmCommand(
  name: OcmExecutable,
  folder = process.env.OCM_BIN,
): Promise<readonly [command: string, ...args: string[]]> {
  if (!folder) {
    return [await toolPath('ocm'), name];
  }
  const path = join(folder, name);
  await access(path, constants.X_OK).catch(() => {
    throw new Error(
      `OCM_BIN=${folder} has no executable "${name}"; unset OCM_BIN to use the OCM that the testbed builds`,
    );
  });
  return [path];
}

/** The version of the OCM that runs; that of `OCM_BIN` does not say it. */
export async function ocmVersion(folder = process.env.OCM_BIN): Promise<string> {
  return folder ? `of ${folder}` : (await getTool('ocm')).version;
}
