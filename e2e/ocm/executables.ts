import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { toolPath } from '../tools/index.ts';

/** OCM's executables that run here. */
export type OcmExecutable = 'registration' | 'placement' | 'work' | 'addon';

/**
 * Where OCM's own programs are, from `OCM_BIN`: the folder of its executables, or `build` for the tool `ocm`. Undefined:
 * the stand-ins are used.
 */
export function ocmPrograms(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment.OCM_BIN || undefined;
}

/**
 * The command of one of OCM's executables: that of the folder `OCM_BIN`, or the part of the tool `ocm` with that name.
 * @throws Error when the folder lacks it
 */
export async function ocmCommand(
  name: OcmExecutable,
  programs = ocmPrograms() ?? 'build',
): Promise<readonly [command: string, ...args: string[]]> {
  if (programs === 'build') {
    return [await toolPath('ocm'), name];
  }
  const path = join(programs, name);
  await access(path, constants.X_OK).catch(() => {
    throw new Error(
      `OCM_BIN=${programs} has no executable "${name}"; OCM_BIN=build uses the OCM that the testbed builds, unset it uses the stand-ins`,
    );
  });
  return [path];
}
