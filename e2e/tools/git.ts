import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What to do when {@link hasGit} is false. */
export const gitNeeded = 'Git 2.28 or later is needed, with `git daemon` (Debian, Ubuntu: apt-get install git).';

/** Whether the machine has the Git that the testbed needs: `git init --initial-branch` came with 2.28. */
export async function hasGit(): Promise<boolean> {
  const { stdout } = await promisify(execFile)('git', ['--version']).catch(() => ({ stdout: '' }));
  const [, major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(stdout) ?? []).map(Number);
  return major > 2 || (major === 2 && minor >= 28);
}
