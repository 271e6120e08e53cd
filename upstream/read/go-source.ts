/** One function of a Go file. */
export interface GoFunction {
  readonly name: string;
  readonly file: string;
  readonly body: string;
}

/** Go without its comments. Texts stay as they are. */
export function withoutComments(source: string): string {
  const tokens = /("(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)+')|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return source.replace(tokens, (_, text?: string) => text ?? ' ');
}

/** The functions of a file that gofmt has formatted: each ends with the first brace at the beginning of a line. */
export function goFunctions(file: string, source: string): GoFunction[] {
  return Array.from(source.matchAll(/^func (?:\([^)\n]*\) )?(\w+)[[(]/gm), ({ 0: head, 1: name = '', index }) => {
    const end = source.indexOf('\n}', index);
    return { name, file, body: source.slice(index + head.length, end < 0 ? undefined : end) };
  });
}

/** What stands between the brace at `open` and the one that closes it. */
export function goBlock(source: string, open: number): string {
  const tokens = /"(?:[^"\\\n]|\\.)*"|`[^`]*`|[{}]/g;
  tokens.lastIndex = open;
  let depth = 0;
  for (let token = tokens.exec(source); token; token = tokens.exec(source)) {
    depth += token[0] === '{' ? 1 : token[0] === '}' ? -1 : 0;
    if (depth === 0) {
      return source.slice(open + 1, token.index);
    }
  }
  return source.slice(open + 1);
}

/**
 * Texts with a name, by that name: those that are exported, from all sources, and constants of the one source that is asked about.
 * A name that stands for different texts in different places is not among the exported ones.
 */
export function goConstants(sources: Iterable<string>): (source: string) => ReadonlyMap<string, string> {
  const found = new Map<string, Set<string>>();
  for (const source of sources) {
    for (const [, name = '', text = ''] of source.matchAll(/(?<![\w.])([A-Z]\w*)\s*(?:string\s*)?=\s*"([^"\\\n]*)"/g)) {
      found.set(name, (found.get(name) ?? new Set()).add(text));
    }
  }
  const exported = [...found].flatMap(([name, [text = '', ...others]]): [string, string][] =>
    others.length > 0 ? [] : [[name, text]],
  );
  return (source) => {
    const own = source.matchAll(/\bconst ([a-z]\w*)\s*(?:string\s*)?=\s*"([^"\\\n]*)"/g);
    return new Map([...exported, ...Array.from(own, ([, name = '', text = '']): [string, string] => [name, text])]);
  };
}

/**
 * The text that an expression stands for: literals and constants, and `…` for what only the running program knows.
 * `config.Prefix + "_total"` may be `…_total`.
 */
export function goText(expression: string, constants: ReadonlyMap<string, string>): string {
  const parts = expression.match(/"(?:[^"\\\n]|\\.)*"|[\w.]+/g) ?? [];
  return parts
    .map((part) => (part.startsWith('"') ? part.slice(1, -1) : constants.get(part.split('.').at(-1) ?? '')))
    .map((text) => text ?? '…')
    .join('');
}
