import { Readable } from 'node:stream';
import { outcomeOf, runExecutable } from '../../lib/ops/index.ts';
import { ctlExecutable } from '../executable.ts';

/** What a run of the tool printed, and its exit code. */
export interface CtlRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the tool in this process, without environment and configuration file unless given. `input` is what a person types. */
export async function runCtl(
  args: readonly string[],
  options: {
    readonly input?: string;
    readonly env?: Record<string, string>;
    readonly signal?: AbortSignal;
    readonly onPrint?: (out: string) => void;
  } = {},
): Promise<CtlRun> {
  let [out, err, code] = ['', '', 0];
  const config = args.includes('--config') || args[0] === undefined ? [] : ['--config', '/nonexistent/ctl.conf'];
  try {
    await runExecutable(ctlExecutable(), {
      args: [...args, ...config],
      env: options.env ?? {},
      signal: options.signal ?? new AbortController().signal,
      stdin: Readable.from([options.input ?? '']),
      stdout: (text) => {
        out += text;
        options.onPrint?.(out);
      },
      stderr: (text) => {
        err += text;
      },
    });
  } catch (error) {
    const outcome = outcomeOf(error);
    code = outcome.exitCode;
    err += outcome.text;
  }
  return { code, out, err };
}
