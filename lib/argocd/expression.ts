import { createContext, Script } from 'node:vm';

/** How long an expression may look for a match. Those that people write take microseconds; the machine may be busy. */
const patienceMs = 500;
/** How long one that took longer is left alone. */
const restMs = 60_000;
const longestExpression = 4_096;
const remembered = 1_000;

interface Sandbox {
  expression: RegExp;
  text: string;
  found: boolean;
}

interface Entry {
  readonly expression: RegExp | undefined;
  restsUntil: number;
}

// A script can be stopped from outside, a search for a match cannot.
const sandbox = createContext(
  Object.assign(Object.create(null), { expression: /$/, text: '', found: false }),
) as Sandbox;
const search = new Script('found = expression.test(text)');
const cache = new Map<string, Entry>();

/**
 * Whether a text matches a regular expression anywhere. One that is invalid matches nothing, as for Argo CD; so does, for a
 * while, one that takes too long: whoever may write an AppProject must not be able to stop the program by it.
 */
export function matchesExpression(source: string, text: string): boolean {
  const entry = entryOf(source);
  if (entry.expression === undefined || performance.now() < entry.restsUntil) {
    return false;
  }
  sandbox.expression = entry.expression;
  sandbox.text = text;
  try {
    search.runInContext(sandbox, { timeout: patienceMs });
    return sandbox.found;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
      throw error;
    }
    entry.restsUntil = performance.now() + restMs;
    return false;
  }
}

function entryOf(source: string): Entry {
  let entry = cache.get(source);
  if (entry === undefined) {
    if (cache.size >= remembered) {
      cache.clear();
    }
    entry = { expression: compile(source), restsUntil: 0 };
    cache.set(source, entry);
  }
  return entry;
}

function compile(source: string): RegExp | undefined {
  if (source.length > longestExpression) {
    return undefined;
  }
  try {
    return new RegExp(source, 'u');
  } catch {
    return undefined;
  }
}
