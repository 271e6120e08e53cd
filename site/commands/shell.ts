/** A command of a page: its words, without assignments before it and redirections. */
export interface ShellCommand {
  readonly page: string;
  readonly line: number;
  /** The whole line, for messages. */
  readonly text: string;
  readonly words: readonly string[];
}

/** A line of a shell block, with those that continue it. */
export interface ShellLine {
  readonly page: string;
  readonly line: number;
  /** The line of the block's fence: what one block defines, its later lines use. */
  readonly block: number;
  /** In one line, without a comment at its end. */
  readonly text: string;
}

/** The lines in the fenced shell blocks of a page that are no comments, in order. */
export function shellLines(page: string, markdown: string): ShellLine[] {
  const found: ShellLine[] = [];
  const lines = markdown.split('\n');
  for (let index = 0; index < lines.length; index++) {
    if (!/^\s*```(sh|bash|shell|console)\s*$/.test(lines[index] ?? '')) {
      continue;
    }
    const block = index + 1;
    for (index++; index < lines.length && !/^\s*```\s*$/.test(lines[index] ?? ''); index++) {
      const line = index + 1;
      let text = lines[index] ?? '';
      while (text.endsWith('\\') && index + 1 < lines.length) {
        index++;
        text = `${text.slice(0, -1).trimEnd()} ${(lines[index] ?? '').trim()}`;
      }
      text = text.replace(/(^|\s+)#\s.*$/, '').trim();
      if (text !== '') {
        found.push({ page, line, block, text });
      }
    }
  }
  return found;
}

/** The commands in the fenced shell blocks of a page, in order. */
export function shellCommands(page: string, markdown: string): ShellCommand[] {
  return shellLines(page, markdown).flatMap(({ line, text }) =>
    split(text).map((words) => ({ page, line, text, words })),
  );
}

/**
 * The commands of one line: split at pipes and the like, comments left out, quotes taken off. A place-holder, `<name>`, is a
 * word, as is `$(…)`.
 */
function split(line: string): string[][] {
  const text = line.replaceAll(/<([a-z-]+)>/g, 'PLACE-HOLDER');
  const commands: string[][] = [];
  let words: string[] = [];
  const pattern =
    /\s+|(#.*)$|(\|\||&&|[|;&])|(\d?>>?|<)\s*(\([^)]*\)|\S+)|((?:'[^']*'|"[^"]*"|\$\([^)]*\)|\\.|[^\s'"|;&<>])+)/gy;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [, comment, operator, , , word] = match;
    if (comment !== undefined) {
      break;
    }
    if (operator !== undefined) {
      commands.push(words);
      words = [];
    } else if (word !== undefined && !(words.length === 0 && /^[A-Za-z_]+=/.test(word))) {
      words.push(word.replaceAll(/^\(|\)$/g, '').replaceAll(/['"]/g, ''));
    }
  }
  return [...commands, words].filter(({ length }) => length > 0);
}
