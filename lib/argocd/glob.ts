import { matchesAnyExpression } from './expression.ts';

/**
 * Whether a text matches a glob of Argo CD (gobwas/glob without separators): `*` and `**` any characters, `?` one,
 * `[abc]`, `[a-z]`, `[!a]` one of a class, `{a,b}` alternatives, `\` takes the next character as it is. An invalid
 * pattern matches nothing. Takes time in proportion to pattern and text, whoever wrote them.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const glob = compiled(pattern);
  if (glob === undefined) {
    return false;
  }
  const characters = Array.from(text);
  return after(glob, characters, new Set([0])).has(characters.length);
}

/** Whether a text is a glob of Argo CD. */
export function isGlob(pattern: string): boolean {
  return compiled(pattern) !== undefined;
}

/**
 * Whether a text matches an entry of a list: an entry between slashes is a regular expression that need not match the
 * whole text; it may match as a glob, too.
 */
export function matchesAny(entries: readonly string[], text: string): boolean {
  return entries.some((entry) => matchesGlob(entry, text)) || matchesAnyExpression(entries, text);
}

type Part =
  | { readonly is: 'any' }
  | { readonly is: 'one'; readonly fits: (character: string) => boolean }
  | { readonly is: 'either'; readonly sequences: readonly Sequence[] };
type Sequence = readonly Part[];

/** Where in the text one can be after a sequence, having begun at one of the places. */
function after(sequence: Sequence, text: readonly string[], begin: ReadonlySet<number>): ReadonlySet<number> {
  let places = begin;
  for (const part of sequence) {
    const next = new Set<number>();
    if (part.is === 'any') {
      for (let at = Math.min(...places); at <= text.length; at++) {
        next.add(at);
      }
    } else if (part.is === 'one') {
      for (const at of places) {
        const character = text[at];
        if (character !== undefined && part.fits(character)) {
          next.add(at + 1);
        }
      }
    } else {
      for (const one of part.sequences) {
        for (const at of after(one, text, places)) {
          next.add(at);
        }
      }
    }
    if (next.size === 0) {
      return next;
    }
    places = next;
  }
  return places;
}

// Patterns come from a few objects and are matched against every other object, so they are compiled once.
const cache = new Map<string, Sequence | undefined>();
const cacheSize = 1_000;
const longestPattern = 4_096;
const deepestPattern = 32;

function compiled(pattern: string): Sequence | undefined {
  if (!cache.has(pattern)) {
    if (cache.size >= cacheSize) {
      cache.clear();
    }
    cache.set(pattern, pattern.length > longestPattern ? undefined : compile(pattern));
  }
  return cache.get(pattern);
}

function compile(pattern: string): Sequence | undefined {
  const parser = { pattern: Array.from(pattern), at: 0 };
  const glob = sequence(parser, 0);
  return parser.at < parser.pattern.length ? undefined : glob;
}

interface Parser {
  readonly pattern: readonly string[];
  at: number;
}

/** Reads up to the end, or inside braces up to the `,` or `}` that ends an alternative. */
function sequence(parser: Parser, depth: number): Sequence | undefined {
  const parts: Part[] = [];
  for (;;) {
    const character = parser.pattern[parser.at];
    if (character === undefined) {
      return depth > 0 ? undefined : parts;
    }
    if (depth > 0 && (character === ',' || character === '}')) {
      return parts;
    }
    parser.at++;
    const part = partAt(parser, character, depth);
    if (part === undefined) {
      return undefined;
    }
    if (part.is !== 'any' || parts.at(-1)?.is !== 'any') {
      parts.push(part);
    }
  }
}

function partAt(parser: Parser, character: string, depth: number): Part | undefined {
  switch (character) {
    case '*':
      return { is: 'any' };
    case '?':
      return { is: 'one', fits: () => true };
    case '[':
      return characterClass(parser);
    case '{':
      return depth < deepestPattern ? alternatives(parser, depth + 1) : undefined;
    case '\\': {
      const escaped = parser.pattern[parser.at++];
      return escaped === undefined ? undefined : { is: 'one', fits: (one) => one === escaped };
    }
    default:
      return { is: 'one', fits: (one) => one === character };
  }
}

function alternatives(parser: Parser, depth: number): Part | undefined {
  const sequences: Sequence[] = [];
  for (;;) {
    const one = sequence(parser, depth);
    if (one === undefined) {
      return undefined;
    }
    sequences.push(one);
    if (parser.pattern[parser.at++] === '}') {
      return { is: 'either', sequences };
    }
  }
}

function characterClass(parser: Parser): Part | undefined {
  const end = parser.pattern.indexOf(']', parser.at + 1);
  if (end < 0) {
    return undefined;
  }
  const all = parser.pattern.slice(parser.at, end);
  parser.at = end + 1;
  const isNegated = all[0] === '!';
  const body = isNegated ? all.slice(1) : all;
  const [from, dash, to] = body;
  if (body.length === 3 && dash === '-' && from !== undefined && to !== undefined) {
    return from > to ? undefined : { is: 'one', fits: (one) => (one >= from && one <= to) !== isNegated };
  }
  return body.length === 0 ? undefined : { is: 'one', fits: (one) => body.includes(one) !== isNegated };
}
