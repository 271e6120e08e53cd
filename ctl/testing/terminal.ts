import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { programCommand } from '../../e2e/programs/index.ts';
import { until } from '../../lib/base/testing.ts';

/** The tool as a process, and who sits before it. */
export interface Sitting {
  /** What it has written, standard output and errors. */
  output(): string;
  /** Waits until what it wrote from `after` on has a text. @returns the length of the output then */
  shows(text: string | RegExp, after?: number): Promise<number>;
  /** Ctrl-C. @returns the exit code; on a terminal also the settings of it before and after */
  interrupt(): Promise<{ readonly code: number; readonly settings: readonly string[] }>;
  /** Whoever reads its standard output goes away. */
  hangUp(): void;
  /** Its end without more input. */
  ended(): Promise<number>;
  kill(): void;
}

/** Starts the tool: with a terminal, as a person does; without one, as a script does, its output into a pipe. */
export function sit(where: 'terminal' | 'pipe', args: readonly string[]): Sitting {
  const command = [...programCommand('argocd-agentctl'), ...args, '--config', '/nonexistent/ctl.conf'];
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  // The shell notes the settings of the terminal, and survives the Ctrl-C that ends the tool.
  const sitting = `trap : INT; stty -g; ${line}; echo "code $?"; stty -g`;
  const [file = '', ...rest] = where === 'terminal' ? ['script', '-qefc', `sh -c "$SITTING"`, '/dev/null'] : command;
  const child = spawn(file, rest, {
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', TERM: 'xterm', SHELL: '/bin/sh', SITTING: sitting },
    stdio: 'pipe',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close').then(([code]) => Number(code ?? -1));
  return {
    output: () => output,
    shows: async (text, after = 0) =>
      until(`the tool to show ${text}`, () => output.slice(after).search(text) >= 0 && output.length, {
        details: () => output,
      }),
    interrupt: async () => {
      if (where === 'pipe') {
        child.kill('SIGINT');
        return { code: await closed, settings: [] };
      }
      child.stdin.write('\u0003');
      await closed;
      // The terminal echoes the key before it.
      const code = /^(?:\^C)?code (\d+)\r?$/m.exec(output)?.[1] ?? '-1';
      return { code: Number(code), settings: output.match(/^[0-9a-f]+(:[0-9a-f]+){5,}/gm) ?? [] };
    },
    hangUp: () => void child.stdout.destroy(),
    ended: () => closed,
    kill: () => void child.kill('SIGKILL'),
  };
}
