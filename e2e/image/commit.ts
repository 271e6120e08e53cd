import { execFileSync } from 'node:child_process';

/** A commit, as programs and images name it. */
export interface Commit {
  readonly revision: string;
  readonly date: Date;
}

/** The commit that a working tree is of; an unknown one, made now, in a source archive, which has no history. */
export function headCommit(folder: string): Commit {
  try {
    const text = execFileSync('git', ['log', '-1', '--format=%H %ct'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    });
    const [revision = '', seconds] = text.trim().split(' ');
    return { revision, date: new Date(Number(seconds) * 1_000) };
  } catch {
    return { revision: 'unknown', date: new Date() };
  }
}
