import { isExpression, isReadableExpression, matchesAnyExpression } from './expression.ts';

/**
 * Whether a text matches a glob of Argo CD (gobwas/glob): `*` and `**` any characters, `?` one, `[abc]`, `[a-z]`, `[!a]` one
 * of a class, `{a,b}` alternatives, `\` takes the next character as it is. An invalid pattern matches nothing. Takes time in
 * proportion to pattern and text, whoever wrote them.
 * @param separator a character that neither `*` nor `?` matches. Default: none
 */
export function matchesGlob(pattern: string, text: string, separator?: string): boolean {
  if (!/[*?[{\\]/.test(pattern)) {
    return pattern === text;
  }
  const glob = compiled(pattern);
  if (glob === undefined) {
    return false;
  }
  const subject = subjectOf(text);
  const end = 1n << BigInt(subject.characters.length);
  const inner = end - 1n;
  const free = separator === undefined ? inner : inner & ~placesBefore(separator, subject);
  return (after(glob, { ...subject, free }, 1n) & end) !== 0n;
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

/** Which entries of a list {@link matchesAny} cannot read: they match nothing. */
export function unreadableEntries(entries: readonly string[]): string[] {
  return entries.filter((entry) => (isExpression(entry) ? !isReadableExpression(entry) : !isGlob(entry)));
}

/** Says once which entries of a flag cannot be read. Argo CD passes over them, too. */
export function warnOfUnreadableEntries(
  flag: string,
  entries: readonly string[],
  log: { warn(fields: object, message: string): void },
): void {
  for (const entry of unreadableEntries(entries)) {
    const hint = 'write a glob, or a regular expression between slashes; a class has one range or a list: [a-z], [abc]';
    log.warn({ entry, hint }, `--${flag}: an entry matches nothing, because it cannot be read`);
  }
}

type Part =
  | { readonly is: 'any'; readonly crosses: boolean }
  | { readonly is: 'anyOne' }
  | { readonly is: 'character'; readonly character: string }
  | { readonly is: 'one'; readonly fits: (character: string) => boolean }
  | { readonly is: 'either'; readonly sequences: readonly Sequence[] };
type Sequence = readonly Part[];

/**
 * Places in a text, one bit for each: the first bit is the place before the first character. All places are worked on at once,
 * because a pattern can hold an alternative for every second character.
 */
type Places = bigint;

/** A text that is matched. */
interface Text {
  readonly characters: readonly string[];
  /** Each of its characters once. */
  readonly distinct: readonly string[];
  readonly all: Places;
  /** The places before each of its characters that was asked for. */
  readonly known: Map<string, Places>;
}

interface Subject extends Text {
  /** The places before a character that is no separator. */
  readonly free: Places;
}

// A few texts are matched against thousands of patterns, one pattern after the other.
const texts = new Map<string, Text>();
const mostTexts = 8;
const longestText = 512;

function subjectOf(text: string): Text {
  let found = texts.get(text);
  if (found === undefined) {
    const characters = Array.from(text);
    const all = (1n << BigInt(characters.length + 1)) - 1n;
    found = { characters, distinct: [...new Set(characters)], all, known: new Map() };
    if (text.length <= longestText) {
      if (texts.size >= mostTexts) {
        texts.clear();
      }
      texts.set(text, found);
    }
  }
  return found;
}

/** Where in the text one can be after a sequence, having begun at one of the places. */
function after(sequence: Sequence, subject: Subject, begin: Places): Places {
  let places = begin;
  for (const part of sequence) {
    if (places === 0n) {
      return places;
    }
    places = afterPart(part, subject, places);
  }
  return places;
}

function afterPart(part: Part, subject: Subject, places: Places): Places {
  switch (part.is) {
    case 'any':
      // Every place from the first one on; or from each one on to the next separator, as far as the addition carries.
      return part.crosses
        ? subject.all & -(places & -places)
        : ((((places & subject.free) + subject.free) ^ subject.free) | places) & subject.all;
    case 'anyOne':
      return (places & subject.free) << 1n;
    case 'character':
      return (places & placesBefore(part.character, subject)) << 1n;
    case 'one':
      return (places & placesOfClass(part.fits, subject)) << 1n;
    case 'either': {
      let found = 0n;
      for (const one of part.sequences) {
        found |= after(one, subject, places);
      }
      return found;
    }
  }
}

function placesBefore(character: string, { characters, distinct, known }: Text): Places {
  let places = known.get(character);
  if (places === undefined && distinct.includes(character)) {
    places = 0n;
    for (let at = characters.indexOf(character); at >= 0; at = characters.indexOf(character, at + 1)) {
      places |= 1n << BigInt(at);
    }
    known.set(character, places);
  }
  return places ?? 0n;
}

function placesOfClass(fits: (character: string) => boolean, text: Text): Places {
  let places = 0n;
  for (const character of text.distinct) {
    if (fits(character)) {
      places |= placesBefore(character, text);
    }
  }
  return places;
}

// Patterns come from a few objects and are matched against every other object, so they are compiled once.
const cache = new Map<string, Sequence | undefined>();
/** In characters of all patterns. Compiled, a character takes some tens of bytes. */
const cacheSize = 256 * 1024;
let cached = 0;
const longestPattern = 4_096;
const deepestPattern = 32;

function compiled(pattern: string): Sequence | undefined {
  if (!cache.has(pattern)) {
    cached += pattern.length;
    if (cached > cacheSize) {
      cache.clear();
      cached = pattern.length;
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
    if (part.is === 'any' && parts.at(-1)?.is === 'any') {
      parts[parts.length - 1] = { is: 'any', crosses: true };
    } else {
      parts.push(part);
    }
  }
}

function partAt(parser: Parser, character: string, depth: number): Part | undefined {
  switch (character) {
    case '*':
      return { is: 'any', crosses: false };
    case '?':
      return { is: 'anyOne' };
    case '[':
      return characterClass(parser);
    case '{':
      return depth < deepestPattern ? alternatives(parser, depth + 1) : undefined;
    case '\\': {
      const escaped = parser.pattern[parser.at++];
      return escaped === undefined ? undefined : { is: 'character', character: escaped };
    }
    default:
      return { is: 'character', character };
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

/**
 * Reads a class after its `[`. To Argo CD it is either one range, `[a-z]`, or a list of characters, in which `\` takes the next
 * one as it is: `[a-z0-9]` is no glob, and neither are `[a-]` and `[]a]`.
 */
function characterClass(parser: Parser): Part | undefined {
  const { pattern } = parser;
  const isNegated = pattern[parser.at] === '!';
  if (isNegated) {
    parser.at++;
  }
  const [from, dash, to] = pattern.slice(parser.at, parser.at + 3);
  if (dash === '-') {
    parser.at += 4;
    return from === undefined || to === undefined || pattern[parser.at - 1] !== ']' || from > to
      ? undefined
      : { is: 'one', fits: (one) => (one >= from && one <= to) !== isNegated };
  }
  const characters = listedCharacters(parser);
  return characters === undefined || characters.size === 0
    ? undefined
    : { is: 'one', fits: (one) => characters.has(one) !== isNegated };
}

/** Reads the characters of a class and its `]`. */
function listedCharacters(parser: Parser): Set<string> | undefined {
  const characters = new Set<string>();
  for (;;) {
    const character = parser.pattern[parser.at++];
    if (character === ']') {
      return characters;
    }
    const listed = character === '\\' ? parser.pattern[parser.at++] : character;
    if (listed === undefined) {
      return undefined;
    }
    characters.add(listed);
  }
}
