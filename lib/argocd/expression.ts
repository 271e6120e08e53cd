import { setFlagsFromString } from 'node:v8';
import { createContext, Script } from 'node:vm';
import { BoundedMap } from '../base/index.ts';
import { dotNetExpression } from './dot-net-expression.ts';

/** Processor time in which one list of expressions is searched. The expressions that people write take microseconds. */
const budgetMs = 50;
/** Share of each expression before those that need more get the rest. */
const shareMs = 2;
/** A search on a busy machine ends after this time, whatever it got of the processor. */
const patienceMs = 1_000;
/** How long an expression or a list is left alone that needed more. */
const restMs = 60_000;
const longestExpression = 4_096;
const remembered = 1_000;
/** Texts of which a list's answer is remembered. */
const rememberedTexts = 1_000;

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
const script = new Script('found = expression.test(text)');
const cache = new Map<string, Entry>();
/** Lists that took all their time, and until when they match nothing. */
const resting = new WeakMap<readonly string[], number>();
/** What lists have answered. A change of an AppProject asks for each of its Applications and repositories, and for each agent. */
const answers = new WeakMap<readonly string[], BoundedMap<string, boolean>>();

/**
 * Whether a text matches one of the entries between slashes, which are regular expressions, anywhere. One that is invalid
 * matches nothing, as in Argo CD. All entries of a list together have 50 ms of processor time: whoever may write an
 * AppProject must not be able to stop the program. An expression that needs more matches nothing for a minute; so does a
 * list that needs more without it. A list is known by its identity, and is searched once for each text.
 */
export function matchesAnyExpression(entries: readonly string[], text: string): boolean {
  if (performance.now() < (resting.get(entries) ?? 0) || !entries.some(isExpression)) {
    return false;
  }
  const known = answers.get(entries) ?? new BoundedMap(rememberedTexts);
  answers.set(entries, known);
  const answer = known.get(text) ?? search(entries, text);
  if (answer !== undefined) {
    known.set(text, answer);
  }
  return answer ?? false;
}

/** Undefined when an expression rests or takes too long: another time it may match. */
function search(entries: readonly string[], text: string): boolean | undefined {
  const began = performance.now();
  let isWhole = true;
  const budget = new Budget(began);
  const slow: Entry[] = [];
  for (const entry of expressionsOf(entries)) {
    if (began < entry.restsUntil) {
      isWhole = false;
      continue;
    }
    if (budget.leftMs < shareMs) {
      resting.set(entries, began + restMs);
      isWhole = false;
      break;
    }
    const found = isFound(entry, text, budget, shareMs);
    if (found === true) {
      return true;
    }
    if (found === undefined) {
      slow.push(entry);
    }
  }
  for (const [index, entry] of slow.entries()) {
    const found = isFound(entry, text, budget, budget.leftMs / (slow.length - index));
    if (found === true) {
      return true;
    }
    if (found === undefined) {
      entry.restsUntil = began + restMs;
      isWhole = false;
    }
  }
  return isWhole ? false : undefined;
}

/** Whether an entry of a list is a regular expression: it stands between slashes. */
export function isExpression(entry: string): boolean {
  return entry.length >= 3 && entry.startsWith('/') && entry.endsWith('/');
}

/** Whether an entry between slashes is understood. */
export function isReadableExpression(entry: string): boolean {
  return entryOf(entry.slice(1, -1)).expression !== undefined;
}

/** The processor time of one call. */
class Budget {
  readonly #endMs = threadMs() + budgetMs;
  readonly #deadline: number;

  constructor(began: number) {
    this.#deadline = began + patienceMs;
  }

  get leftMs(): number {
    return performance.now() < this.#deadline ? this.#endMs - threadMs() : 0;
  }
}

/** Undefined when it takes longer. The other programs of a busy machine do not count. */
function isFound({ expression }: Entry, text: string, budget: Budget, mostMs: number): boolean | undefined {
  if (expression === undefined) {
    return false;
  }
  const endMs = threadMs() + mostMs;
  sandbox.expression = expression;
  sandbox.text = text;
  for (;;) {
    const leftMs = Math.min(endMs - threadMs(), budget.leftMs);
    if (leftMs <= 0) {
      return undefined;
    }
    try {
      // An expression is compiled when it is searched for, and again when it is used often. To optimize alternatives one after
      // the other takes V8 time that doubles with each of them, and nothing can stop it.
      setFlagsFromString('--no-regexp-optimization');
      script.runInContext(sandbox, { timeout: Math.ceil(leftMs) });
      return sandbox.found;
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
        throw error;
      }
    } finally {
      setFlagsFromString('--regexp-optimization');
    }
  }
}

/** Processor time of this thread. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function* expressionsOf(entries: readonly string[]): Iterable<Entry> {
  for (const entry of entries) {
    if (isExpression(entry)) {
      yield entryOf(entry.slice(1, -1));
    }
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
  return dotNetExpression(source);
}
