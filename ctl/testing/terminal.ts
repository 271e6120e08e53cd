import type { Readable } from 'node:stream';
import { programCommand } from '../../e2e/programs/index.ts';
import { spawnSupervised } from '../../e2e/testbed/index.ts';
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
  kill(): Promise<void>;
}

/** Starts the tool: with a terminal, as a person does; without one, as a script does, its output into a pipe. */
export async function sit(where: 'terminal' | 'pipe', args: readonly string[]): Promise<Sitting> {
  const command = [...programCommand('argocd-agentctl'), ...args, '--config', '/nonexistent/ctl.conf'];
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  // The shell notes the settings of the terminal, and survives the Ctrl-C that ends the tool.
  const sitting = `trap : INT; stty -g; ${line}; echo "code $?"; stty -g`;
  const [file = '', ...rest] = where === 'terminal' ? ['sh', '-c', sitting] : command;
  let output = '';
  let shown: Readable | undefined;
  const tool = await spawnSupervised(file, rest, {
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', TERM: 'xterm' },
    input: where === 'terminal' ? 'terminal' : 'stream',
    onOutput(stdout, stderr) {
      for (const stream of [stdout, stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      }
      shown = stdout;
    },
  });
  const ended = async () => (await tool.exited).code ?? -1;
  return {
    output: () => output,
    shows: async (text, after = 0) =>
      until(`the tool to show ${text}`, () => output.slice(after).search(text) >= 0 && output.length, {
        details: () => output,
      }),
    interrupt: async () => {
      if (where === 'pipe') {
        tool.signal('SIGINT');
        return { code: await ended(), settings: [] };
      }
      tool.input?.write('\u0003');
      await ended();
      // The terminal echoes the key before it.
      const code = /^(?:\^C)?code (\d+)\r?$/m.exec(output)?.[1] ?? '-1';
      return { code: Number(code), settings: output.match(/^[0-9a-f]+(:[0-9a-f]+){5,}/gm) ?? [] };
    },
    hangUp: () => void shown?.destroy(),
    ended,
    kill: async () => void (await tool.kill()),
  };
}
