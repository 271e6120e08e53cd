import { GoExpression } from '../../../lib/auth/index.ts';

/** How a field of a policy is compared: `unknown` when its pattern is not understood. */
export type PatternVerdict = boolean | 'unknown';

/** How much work may still be done for one question. Whoever compares takes from it. */
export interface StepBudget {
  left: number;
}

/** A pattern of a policy, ready to be compared with many texts; `unknown`, too, when no steps are left. */
export type PolicyPattern = (text: string, steps: StepBudget) => PatternVerdict;

/** What a search takes in steps, beside one for each character. A step is one comparison of two characters. */
const stepsOfSearch = 500;

/**
 * Compiles a pattern as Argo CD's `policy.matchMode` says. Globs: `*` stands for any text, slashes too, and `?` for one
 * character; Argo CD also reads classes and alternatives, which are rare and are `unknown` here. Regular expressions are Go's and
 * match anywhere in the text, as Argo CD has it.
 */
export function policyPattern(source: string, mode: 'glob' | 'regex'): PolicyPattern {
  if (mode === 'regex') {
    return expression(source);
  }
  if (/[[\]{}\\]/.test(source)) {
    return () => 'unknown';
  }
  return (text, steps) => matchesGlob(source, text, steps);
}

/** Compiled when it is first asked: most of them never are. */
function expression(source: string): PolicyPattern {
  let compiled: GoExpression | 'wrong' | undefined;
  return (text, steps) => {
    steps.left -= stepsOfSearch + text.length;
    if (steps.left < 0) {
      return 'unknown';
    }
    compiled ??= compile(source);
    return compiled === 'wrong' ? 'unknown' : compiled.matches(text);
  };
}

function compile(source: string): GoExpression | 'wrong' {
  try {
    return new GoExpression(source);
  } catch {
    return 'wrong';
  }
}

/**
 * What it takes to compile a regular expression, in characters of one without repetitions: RE2 writes `(ab){1000}` out. It may
 * be less than that.
 */
export function costOfExpression(source: string): number {
  const most = [...source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, from, to]) =>
    Math.max(1, Number(from), Number(to ?? 0)),
  );
  return most.reduce((cost, times) => cost * times, source.length) + 50;
}

/** Takes time in proportion to the product of both lengths at most, whatever they are. */
function matchesGlob(pattern: string, text: string, steps: StepBudget): PatternVerdict {
  let [at, position, star, resume] = [0, 0, -1, 0];
  steps.left -= 1;
  while (position < text.length) {
    steps.left -= 1;
    if (steps.left < 0) {
      return 'unknown';
    }
    if (pattern[at] === '*') {
      star = at++;
      resume = position;
      if (at === pattern.length) {
        return true;
      }
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[position])) {
      at++;
      position++;
    } else if (star >= 0) {
      at = star + 1;
      position = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') {
    at++;
  }
  return at === pattern.length;
}
