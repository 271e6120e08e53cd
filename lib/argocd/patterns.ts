/**
 * Whether a text matches one of the patterns, as Argo CD matches lists of namespaces: an entry between slashes is an
 * unanchored regular expression, and every entry is a glob: `*`, `?`, `[abc]`, `[a-z]`, `[!a]`, `{a,b}`, `\` escapes. A
 * pattern that cannot be read matches nothing.
 */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => compiled(pattern).some((expression) => expression.test(text)));
}

/** Whether a text matches a glob; as in {@link matchesAny}, without regular expressions. */
export function matchesGlob(glob: string, text: string): boolean {
  return compile(globSource(glob)).some((expression) => expression.test(text));
}

function compiled(pattern: string): RegExp[] {
  const isRegExp = pattern.length > 1 && pattern.startsWith('/') && pattern.endsWith('/');
  return [...(isRegExp ? compile(pattern.slice(1, -1)) : []), ...compile(globSource(pattern))];
}

/** None when it is no expression. */
function compile(source: string): RegExp[] {
  try {
    return [new RegExp(source, 's')];
  } catch {
    return [];
  }
}

/** The regular expression of a glob. */
function globSource(glob: string): string {
  let source = '';
  let depth = 0;
  for (let at = 0; at < glob.length; at++) {
    const char = glob.charAt(at);
    if (char === '\\') source += literal(glob.charAt(++at));
    else if (char === '*') source += '.*';
    else if (char === '?') source += '.';
    else if (char === '{') {
      source += '(?:';
      depth++;
    } else if (char === '}' && depth > 0) {
      source += ')';
      depth--;
    } else if (char === ',' && depth > 0) source += '|';
    else if (char === '[') {
      const end = glob.indexOf(']', at + 2);
      if (end < 0) return '(';
      const body = glob.slice(at + 1, end);
      const negated = body.startsWith('!');
      source += `[${negated ? '^' : ''}${(negated ? body.slice(1) : body).replace(/[\\\]^[]/g, '\\$&')}]`;
      at = end;
    } else source += literal(char);
  }
  return `^${source}$`;
}

function literal(char: string): string {
  return char.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
