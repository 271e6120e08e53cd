import type { FlagSet } from './flags.ts';

/** A word, or several, on the way to commands: `pki`, `pki issue`. Alone it prints the list of them. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  /** Other names, each with all its words. */
  readonly aliases?: readonly string[];
  /** Exit code of the group alone. Default 0. */
  readonly exitCode?: 0 | 1;
}

/** Commands by the words of their names. */
interface CommandTree<C> {
  readonly commands: readonly C[];
  readonly groups?: readonly CommandGroup[];
  readonly flags?: FlagSet;
}
interface Named {
  readonly name: string;
  readonly summary: string;
  readonly aliases?: readonly string[];
}

/** The words that may follow the words `path`, each with what it is for, in the order of the commands. */
export function childrenOf(executable: CommandTree<Named>, path: string): { word: string; summary: string }[] {
  const start = path === '' ? '' : `${path} `;
  const children = new Map<string, string>();
  for (const { name, summary } of executable.commands) {
    const [word = '', ...more] = name.startsWith(start) ? name.slice(start.length).split(' ') : [];
    if (word !== '') {
      const group = executable.groups?.find((one) => one.name === start + word);
      const known = children.get(word);
      children.set(word, more.length === 0 ? summary : (known ?? group?.summary ?? ''));
    }
  }
  return Array.from(children, ([word, summary]) => ({ word, summary }));
}

/** The command or group that the arguments name, the arguments without its words, and the word that names nothing. */
export function findCommand<C extends Named>(
  executable: CommandTree<C>,
  given: readonly string[],
): {
  readonly path: string;
  readonly command: C | undefined;
  readonly args: string[];
  readonly stray: string | undefined;
} {
  const known = new Map<string, string>();
  for (const { name, aliases = [] } of [...executable.commands, ...(executable.groups ?? [])]) {
    for (const each of [name, ...aliases]) {
      known.set(each, name);
    }
  }
  const args: string[] = [];
  let path = '';
  let stray: string | undefined;
  for (let index = 0; index < given.length; index++) {
    const arg = given[index] ?? '';
    const next = known.get(path === '' ? arg : `${path} ${arg}`);
    if (arg === '--' || (!arg.startsWith('-') && next === undefined)) {
      stray = arg;
      args.push(...given.slice(index));
      break;
    }
    if (next !== undefined) {
      path = next;
      continue;
    }
    args.push(arg);
    const value = given[index + 1];
    if (takesValue(arg, executable.flags ?? {}) && value !== undefined) {
      args.push(value);
      index++;
    }
  }
  const command = executable.commands.find(({ name }) => name === path);
  // Without flags for all commands nothing can stand before a command.
  stray ??= executable.flags === undefined ? args.find((arg) => arg !== '--help' && arg !== '-h') : undefined;
  return { path, command, args, stray };
}

/** Whether the argument after this one is the value of a flag that every command has. */
function takesValue(arg: string, flags: FlagSet): boolean {
  const name = arg.replace(/^--?/, '');
  const flag = Object.hasOwn(flags, name) ? flags[name] : Object.values(flags).find(({ short }) => short === name);
  return flag !== undefined && flag.type !== 'bool';
}
