import { type CommandGroup, childrenOf, findCommand } from './command-tree.ts';
import { type Detail, parseDetail } from './detail.ts';
import { ExitError, UsageError } from './errors.ts';
import { type Flag, type FlagSet, type FlagValues, type ParsedFlags, parseFlags } from './flags.ts';
import { createLoggers, type Loggers } from './log.ts';

/** A sub-command of an executable. */
export interface Command<F extends FlagSet = FlagSet> {
  /** One word, or the words on the way to it: `agent create`. */
  readonly name: string;
  /** Other names, each with all its words. */
  readonly aliases?: readonly string[];
  /** One line for the list of commands. */
  readonly summary: string;
  readonly flags: F;
  /** What the help says below the summary. */
  readonly description?: string;
  /** Names of the arguments besides flags as the help shows them: `NAME`, or `[NAME]` if optional. `parsed.rest` holds the values. */
  readonly arguments?: readonly string[];
  /** Whether arguments that are no flags are ignored with a warning, as cobra does for the commands of the originals. */
  readonly ignoresArguments?: boolean;
  /** Flags of the originals that this version refuses by name, with their environment variable if they have one. */
  readonly unsupported?: Readonly<Record<string, string | undefined>>;
  /** Runs until done or aborted. The parsed flags also say which were given and what in the environment was ignored. */
  readonly run: (values: FlagValues<F>, context: CommandContext<F>) => Promise<void>;
}

/** What a command runs with. */
export interface CommandContext<F extends FlagSet = FlagSet> {
  readonly signal: AbortSignal;
  readonly parsed: ParsedFlags<F>;
  /** Environment variables that are set to something but belong to features that this version does not have. */
  readonly ignored: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** What a person answers. */
  readonly stdin: NodeJS.ReadableStream;
}

/**
 * The loggers of a command with `--log-level`, `--log-format` and `--full-detail`, after they said what of the command line
 * and the environment was not taken.
 * @throws UsageError for a level or format that does not exist
 */
export function commandLoggers(
  name: string,
  flags: {
    readonly 'log-level': readonly string[];
    readonly 'log-format': string;
    readonly 'full-detail': readonly string[];
  },
  context: { readonly parsed: { readonly warnings: readonly string[] }; readonly ignored: readonly string[] },
): Loggers & { readonly detail: Detail } {
  const loggers = createLoggers({ name, level: flags['log-level'], format: flags['log-format'] });
  const { root } = loggers;
  for (const warning of context.parsed.warnings) {
    root.warn(warning);
  }
  if (context.ignored.length > 0) {
    root.warn({ settings: context.ignored }, 'settings of features that this version does not have are ignored');
  }
  return { ...loggers, detail: parseDetail(flags['full-detail'], root) };
}

/** An executable: one program of several commands, or of one that has the program's own name. */
export interface Executable {
  readonly name: string;
  readonly summary: string;
  // biome-ignore lint/suspicious/noExplicitAny: commands with different flag sets share one list
  readonly commands: readonly Command<any>[];
  /** The words on the way to commands of several words. */
  readonly groups?: readonly CommandGroup[];
  /** Flags that every command takes, and that may stand before its name. Those of the command itself win. */
  readonly flags?: FlagSet;
  /** Exit code when nothing but the help is asked for, by no word at all. Default 0. */
  readonly bareExitCode?: 0 | 1;
}

/** Types a command by its flags; returns it unchanged. */
export function command<F extends FlagSet>(definition: Command<F>): Command<F> {
  return definition;
}

/** The help of one command, as cobra prints it. */
export function commandHelp(executable: Executable, command: Command): string {
  const own = executable.commands.length === 1 && command.name === executable.name;
  const description = command.description === undefined ? [] : [command.description, ''];
  return [command.summary, '', ...description, ...usageLines(executable, command, own)].join('\n');
}

function usageLines(executable: Executable, command: Command, own = false): string[] {
  const path = own ? executable.name : `${executable.name} ${command.name}`;
  return [
    'Usage:',
    `  ${[path, ...(command.arguments ?? []), '[flags]'].join(' ')}`,
    '',
    ...(command.aliases === undefined ? [] : ['Aliases:', `  ${command.aliases.join(', ')}`, '']),
    'Flags:',
    ...flagLines(command.flags),
    '',
    ...globalFlagLines(executable, globalFlags(executable, command)),
  ];
}

/** The flags of all commands that this one does not replace by its own. */
function globalFlags(executable: Executable, command: Command): FlagSet {
  const own = Object.entries(executable.flags ?? {}).filter(([name]) => !Object.hasOwn(command.flags, name));
  return Object.fromEntries(own);
}

function globalFlagLines({ flags }: Executable, shown: FlagSet = flags ?? {}): string[] {
  return flags === undefined ? [] : ['Global Flags:', ...rowsOf(Object.entries(shown)), ''];
}

function flagLines(flags: FlagSet): string[] {
  return rowsOf([...Object.entries(flags), ['help', helpFlag]]);
}

function rowsOf(flags: readonly (readonly [string, Flag<unknown>])[]): string[] {
  const rows = flags
    .filter(([, flag]) => flag.hidden !== true)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => {
      const value = flag.type === 'bool' ? '' : ` ${flag.type}`;
      const head = `${flag.short === undefined ? '      ' : `  -${flag.short}, `}--${name}${value}`;
      const empty = ['""', '[]', 'false', '0', '0s'].includes(flag.format(flag.default));
      const tail = [empty ? '' : ` (default ${flag.format(flag.default)})`, flag.env ? ` [$${flag.env}]` : ''].join('');
      return [head, `${flag.usage}${tail}`] as const;
    });
  const width = Math.max(...rows.map(([head]) => head.length));
  return rows.map(([head, text]) => `${head.padEnd(width)}   ${text}`);
}

const helpFlag: Flag<unknown> = {
  type: 'bool',
  usage: 'show this help',
  default: false,
  short: 'h',
  parse: () => true,
  parseEnv: () => true,
  format: String,
};

/** The help of the executable or, with the words of a group, of the group: what follows them. */
export function executableHelp(executable: Executable, path = ''): string {
  const children = childrenOf(executable, path);
  const width = Math.max(...children.map(({ word }) => word.length));
  const group = executable.groups?.find(({ name }) => name === path);
  const usage = path === '' ? executable.name : `${executable.name} ${path}`;
  return [
    group?.summary ?? executable.summary,
    '',
    'Usage:',
    `  ${usage} [command]`,
    '',
    'Available Commands:',
    ...children.map(({ word, summary }) => `  ${word.padEnd(width)}   ${summary}`),
    '',
    ...globalFlagLines(executable),
    `Use "${usage} [command] --help" for more information about a command.`,
    '',
  ].join('\n');
}

/** What an executable runs with. Streams left out are those of the process. */
export interface ExecutableOptions {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly stdout?: (text: string) => void;
  readonly stderr?: (text: string) => void;
  readonly stdin?: NodeJS.ReadableStream;
}

/**
 * Finds the command that the arguments name and runs it; `help`, `--help` and nothing print help.
 * @throws UsageError whose message ends with the usage of the command
 * @throws ExitError after a help that was not asked for, where the executable or the group says so
 */
export async function runExecutable(executable: Executable, options: ExecutableOptions): Promise<void> {
  const stdout = options.stdout ?? ((text: string) => void process.stdout.write(text));
  const stderr = options.stderr ?? ((text: string) => void process.stderr.write(text));
  const only = executable.commands.length === 1 && executable.commands[0]?.name === executable.name;
  const given = only ? [executable.name, ...options.args] : options.args;
  const isHelpWord = given[0] === 'help';
  const found = findCommand(
    executable,
    given[0] === '--version' ? ['version', ...given.slice(1)] : given.slice(isHelpWord ? 1 : 0),
  );
  const wantsHelp = isHelpWord || found.args.some((arg) => arg === '--help' || arg === '-h');
  const { command } = found;
  if (command === undefined) {
    const { stray } = found;
    if (stray !== undefined) {
      const path = found.path === '' ? executable.name : `${executable.name} ${found.path}`;
      throw new UsageError(`unknown command "${stray}" for "${path}"\n\n${executableHelp(executable, found.path)}`);
    }
    stdout(executableHelp(executable, found.path));
    const group = executable.groups?.find(({ name }) => name === found.path);
    const exitCode = (found.path === '' ? executable.bareExitCode : group?.exitCode) ?? 0;
    if (exitCode !== 0 && !wantsHelp) {
      throw new ExitError(exitCode);
    }
    return;
  }
  if (wantsHelp) {
    return stdout(commandHelp(executable, command));
  }
  let parsed: ParsedFlags<FlagSet>;
  try {
    parsed = parseFlags(
      { ...globalFlags(executable, command), ...(command.flags as FlagSet) },
      {
        args: found.args,
        env: options.env,
        unsupported: new Set(Object.keys(command.unsupported ?? {})),
      },
    );
    parsed = checkedArguments(parsed, command, `${executable.name} ${found.path}`);
  } catch (error) {
    if (!(error instanceof UsageError)) {
      throw error;
    }
    throw new UsageError(`${error.message}\n${usageLines(executable, command, only).join('\n')}`);
  }
  const ignored = Object.values(command.unsupported ?? {}).filter(
    (name): name is string => name !== undefined && !['', '0', '0s', 'false'].includes(options.env[name] ?? ''),
  );
  const { signal, env, stdin = process.stdin } = options;
  await command.run(parsed.values, { signal, parsed, ignored, env, stdout, stderr, stdin });
}

/**
 * The parsed flags, with a warning for arguments that the command ignores.
 * @throws UsageError for one that is missing or that it does not take
 */
function checkedArguments(parsed: ParsedFlags<FlagSet>, command: Command, path: string): ParsedFlags<FlagSet> {
  const { arguments: names = [] } = command;
  const missing = names[parsed.rest.length];
  if (missing !== undefined && !missing.startsWith('[')) {
    throw new UsageError(`"${path}" needs the argument ${missing}`);
  }
  const stray = parsed.rest[names.length];
  if (stray === undefined) {
    return parsed;
  }
  if (command.ignoresArguments !== true) {
    throw new UsageError(`unknown argument "${stray}" for "${path}"`);
  }
  const shown = parsed.rest.map((argument) => JSON.stringify(argument)).join(', ');
  const hint = parsed.rest.some((argument) => ['true', 'false'].includes(argument))
    ? '; a flag without a value is set to false with --name=false'
    : '';
  return { ...parsed, warnings: [...parsed.warnings, `arguments that are no flags are ignored: ${shown}${hint}`] };
}
