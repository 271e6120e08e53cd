import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { effort } from '../../lib/base/testing.ts';
import { Random } from '../random/index.ts';
import { toolPath } from '../tools/index.ts';

/** A question to Argo CD's own functions, and what this project answers. */
export interface Compared {
  /** What e2e/tools/kubernetes-1.34/argocd-oracle is asked. */
  readonly of: object;
  readonly ours: unknown;
  /** Whether ours may be what it is, given Argo CD's answer. Default: both are equal. */
  readonly agrees?: (theirs: unknown) => boolean;
}

/** Limit of a test that compares, ms: a million take some minutes. */
export const comparisonMs = effort(180_000, 2 * 3_600_000);

/** Their answers fit into a pipe, so that Argo CD waits for nobody. */
const batch = 1_000;

/**
 * Asks Argo CD's own functions random questions of one kind: some thousands, or a million in a thorough run.
 * @param each how many questions one of `make` stands for. Default: 1
 * @returns the shortest question that is answered otherwise, with its seed; undefined when there is none
 */
export async function compareWithArgoCD(
  kind: string,
  make: (dice: Random) => Compared,
  { each = 1 }: { readonly each?: number } = {},
): Promise<object | undefined> {
  const first = Number(process.env.SEED ?? 1);
  const last = first + Math.ceil(effort(5_000, 1_000_000) / each);
  const oracle = await start();
  let found: { readonly size: number; readonly is: object } | undefined;
  const compare = async (seed: number, questions: readonly Compared[], answers: Promise<readonly unknown[]>) => {
    for (const [at, theirs] of (await answers).entries()) {
      const { of, ours, agrees = (one: unknown) => equal(one, ours) } = questions[at] as Compared;
      if (agrees(theirs)) {
        continue;
      }
      const size = JSON.stringify(of).length;
      if (size < (found?.size ?? Number.POSITIVE_INFINITY)) {
        found = { size, is: { seed: seed + at, of, theirs, ours } };
      }
    }
  };
  try {
    let before = Promise.resolve();
    for (let seed = first; seed < last; seed += batch) {
      const questions = Array.from({ length: Math.min(batch, last - seed) }, (_, at) => make(new Random(seed + at)));
      await before;
      // Argo CD answers these while the next are made.
      before = compare(seed, questions, oracle.ask(questions.map(({ of }) => ({ kind, of }))));
    }
    await before;
  } finally {
    await oracle.close();
  }
  return found?.is;
}

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

async function start() {
  const child: ChildProcess = spawn(await toolPath('argocd-oracle'), { stdio: ['pipe', 'pipe', 'inherit'] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) {
    throw new Error('argocd-oracle has no pipes');
  }
  const ended = once(child, 'close');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async ask(questions: readonly object[]): Promise<unknown[]> {
      // All lines at once: the program answers while it reads.
      stdin.write(questions.map((question) => `${JSON.stringify(question)}\n`).join(''));
      const answers: unknown[] = [];
      for (const _ of questions) {
        const { value, done } = await lines.next();
        if (done === true) {
          throw new Error('argocd-oracle has ended before it had answered');
        }
        answers.push(JSON.parse(value as string));
      }
      return answers;
    },
    async close(): Promise<void> {
      stdin.end();
      await ended;
    },
  };
}
