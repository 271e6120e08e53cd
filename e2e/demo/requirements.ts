import { execFile } from 'node:child_process';
import { platform } from 'node:os';
import { promisify } from 'node:util';
import { fleetPorts, portsInTheWay, takenPorts } from '../fleet/index.ts';
import { gitNeeded, hasGit } from '../tools/index.ts';

const run = promisify(execFile);

/** What the machine lacks, with what to do about it in the message. */
export class RequirementError extends Error {
  override readonly name = 'RequirementError';
}

/**
 * Looks for what the demo needs of the machine besides Node and Go, before anything is started.
 * @throws RequirementError for the first that is missing.
 */
export async function checkRequirements(signal: AbortSignal): Promise<void> {
  if (platform() !== 'linux') {
    throw new RequirementError(`The demo runs pods as Linux processes, and this is ${platform()}: use a Linux VM.`);
  }
  if (!(await hasGit())) {
    throw new RequirementError(gitNeeded);
  }
  const taken = await takenPorts(fleetPorts);
  if (taken.length > 0) {
    throw new RequirementError(portsInTheWay(taken));
  }
  const asRoot = process.getuid?.() === 0;
  await works(
    '/usr/bin/unshare',
    [...(asRoot ? [] : ['--user', '--map-root-user']), '--mount', '--uts', '/usr/bin/setpriv', '/bin/true'],
    signal,
    asRoot
      ? 'Mount namespaces are needed (unshare and setpriv of util-linux); in a container, run it with --privileged.'
      : 'Namespaces are needed (unshare and setpriv of util-linux), and this machine does not give them to ordinary ' +
          'users: run as root, or allow them (sysctl kernel.apparmor_restrict_unprivileged_userns=0).',
  );
}

async function works(command: string, args: string[], signal: AbortSignal, otherwise: string): Promise<void> {
  try {
    await run(command, args, { signal });
  } catch (error) {
    if (signal.aborted) {
      throw signal.reason;
    }
    throw new RequirementError(`${otherwise} ${command} said: ${(error as Error).message.trim()}`);
  }
}
