/**
 * Compiles a regular expression that is written for .NET, as Argo CD reads those of its lists (dlclark/regexp2). What texts of
 * ASCII letters, digits and marks can tell apart is as there: escapes of marks, braces and brackets that stand for themselves,
 * `\A`, `\z` and `\Z`, comments, and options at the beginning.
 * @returns undefined for one that is invalid there, or that has what JavaScript lacks: subtraction of classes, atomic and
 * conditional groups, options in the middle
 */
export function dotNetExpression(source: string): RegExp | undefined {
  const [, options = '', rest = source] = /^\(\?([ims]+)\)(.*)$/s.exec(source) ?? [];
  const translated = translate(rest);
  try {
    return translated === undefined ? undefined : new RegExp(translated, `u${[...new Set(options)].join('')}`);
  } catch {
    return undefined;
  }
}

const anchors: Readonly<Record<string, string>> = { A: '(?<![^])', z: '(?![^])', Z: '(?=\\n?(?![^]))' };
const quantifier = /^\{\d+(,\d*)?\}/;

function translate(source: string): string | undefined {
  let result = '';
  for (let at = 0; at < source.length; ) {
    const piece = pieceAt(source, at);
    if (piece === undefined) {
      return undefined;
    }
    result += piece.text;
    at += piece.length;
  }
  return result;
}

interface Piece {
  readonly text: string;
  /** In the source. */
  readonly length: number;
}

function pieceAt(source: string, at: number): Piece | undefined {
  const character = source[at] ?? '';
  switch (character) {
    case '\\':
      return escapeAt(source, at, false);
    case '[':
      return classAt(source, at);
    case '{': {
      const [count] = quantifier.exec(source.slice(at, at + 24)) ?? [];
      return count === undefined ? { text: '\\{', length: 1 } : { text: count, length: count.length };
    }
    case '}':
    case ']':
      return { text: `\\${character}`, length: 1 };
    case '(': {
      const [comment] = /^\(\?#[^)]*\)/.exec(source.slice(at)) ?? [];
      return comment === undefined ? { text: '(', length: 1 } : { text: '', length: comment.length };
    }
    default:
      return { text: character, length: 1 };
  }
}

function escapeAt(source: string, at: number, isInClass: boolean): Piece | undefined {
  const next = source[at + 1];
  if (next === undefined) {
    return undefined;
  }
  const anchor = isInClass ? undefined : anchors[next];
  if (anchor !== undefined) {
    return { text: anchor, length: 2 };
  }
  if (/\w/.test(next)) {
    // JavaScript knows those that it shares with .NET, and refuses others, as that does.
    return { text: `\\${next}`, length: 2 };
  }
  const isSyntax = /[\^$\\.*+?()[\]{}|/]/.test(next) || (isInClass && next === '-');
  return { text: isSyntax ? `\\${next}` : next, length: 2 };
}

/** A class: to .NET a `]` at its beginning is one of its characters. */
function classAt(source: string, begin: number): Piece | undefined {
  const opening = source[begin + 1] === '^' ? '[^' : '[';
  let text = opening;
  let at = begin + opening.length;
  if (source[at] === ']') {
    text += '\\]';
    at++;
  }
  for (;;) {
    const character = source[at];
    if (character === undefined || (character === '-' && source[at + 1] === '[')) {
      return undefined;
    }
    if (character === ']') {
      return { text: `${text}]`, length: at + 1 - begin };
    }
    const piece = character === '\\' ? escapeAt(source, at, true) : { text: character, length: 1 };
    if (piece === undefined) {
      return undefined;
    }
    text += piece.text;
    at += piece.length;
  }
}
