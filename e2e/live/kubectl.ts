import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { Program } from '../pair/index.ts';
import { toolPath } from '../tools/index.ts';

/** How a command ended and what its user read. */
export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** kubectl with a kubeconfig of its own, and a home folder for what it caches. */
export class Kubectl {
  readonly #path: string;
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(path: string, environment: Readonly<Record<string, string>>) {
    this.#path = path;
    this.#environment = environment;
  }

  /** Builds kubectl when it is not there yet. */
  static async prepare(kubeconfig: string, home: string): Promise<Kubectl> {
    return new Kubectl(await toolPath('kubectl'), { KUBECONFIG: kubeconfig, HOME: home, PATH: process.env.PATH ?? '' });
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], input = ''): Promise<Said> {
    const child = spawn(this.#path, [...args], { env: this.#environment, stdio: ['pipe', 'pipe', 'pipe'] });
    // One that reads nothing may have ended before its input does.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [stdout, stderr, code] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve)),
    ]);
    return { code, stdout, stderr };
  }

  /** Starts a command that goes on until it is stopped. */
  start(args: readonly string[]): Program {
    const program = new Program(args, this.#environment, this.#path);
    program.start();
    return program;
  }
}
