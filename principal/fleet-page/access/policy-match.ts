import { GoExpression } from '../../../lib/auth/index.ts';

/** How a field of a policy is compared: `unknown` when its pattern is not understood. */
export type PatternVerdict = boolean | 'unknown';

/** A pattern of a policy, ready to be compared with many texts. */
export type PolicyPattern = (text: string) => PatternVerdict;

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
  return (text) => matchesGlob(source, text);
}

function expression(source: string): PolicyPattern {
  try {
    const compiled = new GoExpression(source);
    return (text) => compiled.matches(text);
  } catch {
    return () => 'unknown';
  }
}

/** Takes time in proportion to the product of both lengths at most, whatever they are. */
function matchesGlob(pattern: string, text: string): boolean {
  let [at, position, star, resume] = [0, 0, -1, 0];
  while (position < text.length) {
    if (pattern[at] === '*') {
      star = at++;
      resume = position;
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
