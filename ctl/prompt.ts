import { createInterface } from 'node:readline';
import { FatalError } from '../lib/ops/index.ts';
import type { Ctl } from './ctl-command.ts';

/** Asks a person on the terminal. */
export interface Prompt {
  /** The next line. @throws FatalError when there is none */
  ask(question: string): Promise<string>;
  /** Asks until the answer is good. */
  askFor(question: string, isGood: (answer: string) => boolean): Promise<string>;
  close(): void;
}

/** Opens the standard input for questions. Close it. */
export function openPrompt({ stdin, print, signal }: Pick<Ctl, 'stdin' | 'print' | 'signal'>): Prompt {
  const lines = createInterface({ input: stdin, signal });
  const iterator = lines[Symbol.asyncIterator]();
  const ask = async (question: string): Promise<string> => {
    print(question);
    const { value, done } = await iterator.next();
    if (done) {
      throw new FatalError('no answer: the standard input has ended');
    }
    return value;
  };
  return {
    ask,
    askFor: async (question, isGood) => {
      for (;;) {
        const answer = await ask(question);
        if (isGood(answer)) {
          return answer;
        }
      }
    },
    close: () => lines.close(),
  };
}

/** Whether the answer to a question is `y`. Without an answer it is no. */
export async function confirmed(ctl: Pick<Ctl, 'stdin' | 'print' | 'signal'>, question: string): Promise<boolean> {
  const prompt = openPrompt(ctl);
  try {
    const answer = await prompt.ask(question).catch(() => '');
    return answer.trim().toLowerCase() === 'y';
  } finally {
    prompt.close();
  }
}
