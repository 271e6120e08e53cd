import type { ChaosFinding } from './invariants.ts';

/** A program, and all that it has said. */
export interface Talker {
  readonly name: string;
  readonly output: string;
}

const shownObjects = 3;
const shownLines = 8;
const shownLetters = 400;

/**
 * What programs said of the objects that findings name, the last lines of each program: a fault that comes once in many runs has
 * to be understood from the one run that shows it.
 */
export function tracesOf(findings: readonly Pick<ChaosFinding, 'what'>[], programs: readonly Talker[]): string[] {
  const objects = new Set(findings.map(({ what }) => /\b[a-z][\w-]*\/([a-z][\w-]*)\b/.exec(what)?.[1]));
  objects.delete(undefined);
  return [...objects].slice(0, shownObjects).flatMap((object) => {
    const isAbout = new RegExp(`\\b${object}(?![\\w-])`);
    return programs.flatMap(({ name, output }) => {
      const lines = output.split('\n').filter((line) => isAbout.test(line));
      return lines.slice(-shownLines).map((line) => `${object}, ${name}: ${line.slice(0, shownLetters)}`);
    });
  });
}
