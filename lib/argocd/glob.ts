/**
 * Whether a text matches a glob of Argo CD (gobwas/glob without separators): `*` and `**` any characters, `?` one,
 * `[abc]`, `[a-z]`, `[!a]` one of a class, `{a,b}` alternatives, `\` takes the next character as it is. An invalid
 * pattern matches nothing.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  return compiled(pattern)?.test(text) ?? false;
}

/**
 * Whether a text matches an entry of a list: an entry between slashes is a regular expression that need not match the
 * whole text; what does not match so is still tried as a glob.
 */
export function matchesAny(entries: readonly string[], text: string): boolean {
  return entries.some((entry) => matchesExpression(entry, text) || matchesGlob(entry, text));
}

function matchesExpression(entry: string, text: string): boolean {
  if (entry.length < 3 || !entry.startsWith('/') || !entry.endsWith('/')) {
    return false;
  }
  try {
    return new RegExp(entry.slice(1, -1), 'u').test(text);
  } catch {
    return false; // as for Argo CD, an invalid expression matches nothing
  }
}

// Patterns come from a few objects and are matched against every other object, so they are compiled once.
const cache = new Map<string, RegExp | undefined>();
const cacheSize = 1_000;

function compiled(pattern: string): RegExp | undefined {
  if (!cache.has(pattern)) {
    if (cache.size >= cacheSize) {
      cache.clear();
    }
    cache.set(pattern, compile(pattern));
  }
  return cache.get(pattern);
}

function compile(pattern: string): RegExp | undefined {
  const parser = { pattern, at: 0 };
  const source = sequence(parser, 0);
  return source === undefined || parser.at < pattern.length ? undefined : new RegExp(`^(?:${source})$`, 'su');
}

interface Parser {
  readonly pattern: string;
  at: number;
}

/** Translates up to the end, or inside braces up to the `,` or `}` that ends an alternative. */
function sequence(parser: Parser, depth: number): string | undefined {
  let source = '';
  while (parser.at < parser.pattern.length) {
    const char = String.fromCodePoint(parser.pattern.codePointAt(parser.at) ?? 0);
    if (depth > 0 && (char === ',' || char === '}')) {
      return source;
    }
    parser.at += char.length;
    const part = element(parser, char, depth);
    if (part === undefined) {
      return undefined;
    }
    source += part;
  }
  return depth > 0 ? undefined : source;
}

function element(parser: Parser, char: string, depth: number): string | undefined {
  switch (char) {
    case '*':
      while (parser.pattern[parser.at] === '*') {
        parser.at++;
      }
      return '.*';
    case '?':
      return '.';
    case '[':
      return characterClass(parser);
    case '{':
      return alternatives(parser, depth + 1);
    case '\\': {
      const next = parser.pattern.codePointAt(parser.at);
      if (next === undefined) {
        return undefined;
      }
      const escaped = String.fromCodePoint(next);
      parser.at += escaped.length;
      return literal(escaped);
    }
    default:
      return literal(char);
  }
}

function alternatives(parser: Parser, depth: number): string | undefined {
  const parts: string[] = [];
  for (;;) {
    const part = sequence(parser, depth);
    if (part === undefined) {
      return undefined;
    }
    parts.push(part);
    if (parser.pattern[parser.at++] === '}') {
      return `(?:${parts.join('|')})`;
    }
  }
}

function characterClass(parser: Parser): string | undefined {
  const end = parser.pattern.indexOf(']', parser.at + 1);
  if (end < 0) {
    return undefined;
  }
  const text = parser.pattern.slice(parser.at, end);
  parser.at = end + 1;
  const negated = text.startsWith('!');
  const body = negated ? text.slice(1) : text;
  const range = /^(.)-(.)$/su.exec(body);
  if (range !== null) {
    const [, from = '', to = ''] = range;
    return from > to ? undefined : `[${negated ? '^' : ''}${inClass(from)}-${inClass(to)}]`;
  }
  return body === '' ? undefined : `[${negated ? '^' : ''}${Array.from(body, inClass).join('')}]`;
}

function literal(char: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(char) ? `\\${char}` : char;
}

function inClass(char: string): string {
  return char === '-' ? '\\-' : literal(char);
}
