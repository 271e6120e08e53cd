import { type Detail, parseDetail } from './detail.ts';
import { UsageError } from './errors.ts';
import { type Flag, type FlagSet, type FlagValues, type ParsedFlags, parseFlags } from './flags.ts';
import { createLoggers, type Loggers } from './log.ts';

/** A sub-command of an executable. */
export interface Command<F extends FlagSet = FlagSet> {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly flags: F;
  /** Names of the arguments besides flags, all required, as the help shows them: `NAME`. `parsed.rest` holds the values. */
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
}

/** Types a command by its flags; returns it unchanged. */
export function command<F extends FlagSet>(definition: Command<F>): Command<F> {
  return definition;
}

/** The help of one command, as cobra prints it. */
export function commandHelp(executable: Executable, command: Command): string {
  const own = executable.commands.length === 1 && command.name === executable.name;
  return [command.summary, '', ...usageLines(executable, command, own)].join('\n');
}

function usageLines(executable: Executable, command: Command, own = false): string[] {
  const path = own ? executable.name : `${executable.name} ${command.name}`;
  return [
    'Usage:',
    `  ${[path, ...(command.arguments ?? []), '[flags]'].join(' ')}`,
    '',
    'Flags:',
    ...flagLines(command.flags),
    '',
  ];
}

function flagLines(flags: FlagSet): string[] {
  const rows = [...Object.entries(flags), ['help', helpFlag] as const]
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

/** The help of the executable: its commands. */
export function executableHelp(executable: Executable): string {
  const width = Math.max(...executable.commands.map(({ name }) => name.length));
  return [
    executable.summary,
    '',
    'Usage:',
    `  ${executable.name} [command]`,
    '',
    'Available Commands:',
    ...executable.commands.map(({ name, summary }) => `  ${name.padEnd(width)}   ${summary}`),
    '',
    `Use "${executable.name} [command] --help" for more information about a command.`,
    '',
  ].join('\n');
}

/**
 * Finds the command that the arguments name and runs it; `help`, `--help` and nothing print help.
 * @throws UsageError whose message ends with the usage of the command
 */
export async function runExecutable(
  executable: Executable,
  options: { args: readonly string[]; env: NodeJS.ProcessEnv; signal: AbortSignal; stdout?: (text: string) => void },
): Promise<void> {
  const stdout = options.stdout ?? ((text: string) => void process.stdout.write(text));
  const only = executable.commands.length === 1 && executable.commands[0]?.name === executable.name;
  let [word, ...args] = only ? [executable.name, ...options.args] : options.args;
  if (word === undefined || word === '--help' || word === '-h') {
    return stdout(executableHelp(executable));
  }
  if (word === '--version') {
    word = 'version';
  }
  const wantsHelp = word === 'help';
  if (wantsHelp) {
    [word, ...args] = args;
  }
  if (word === undefined) {
    return stdout(executableHelp(executable));
  }
  const found = executable.commands.find(({ name }) => name === word);
  if (found === undefined) {
    throw new UsageError(`unknown command "${word}" for "${executable.name}"\n\n${executableHelp(executable)}`);
  }
  if (wantsHelp || args.includes('--help') || args.includes('-h')) {
    return stdout(commandHelp(executable, found));
  }
  let parsed: ParsedFlags<FlagSet>;
  try {
    parsed = parseFlags(found.flags as FlagSet, {
      args,
      env: options.env,
      unsupported: new Set(Object.keys(found.unsupported ?? {})),
    });
    parsed = checkedArguments(parsed, found, `${executable.name} ${word}`);
  } catch (error) {
    if (!(error instanceof UsageError)) {
      throw error;
    }
    throw new UsageError(`${error.message}\n${usageLines(executable, found, only).join('\n')}`);
  }
  const ignored = Object.values(found.unsupported ?? {}).filter(
    (name): name is string => name !== undefined && !['', '0', '0s', 'false'].includes(options.env[name] ?? ''),
  );
  await found.run(parsed.values, { signal: options.signal, parsed, ignored, env: options.env, stdout });
}

/**
 * The parsed flags, with a warning for arguments that the command ignores.
 * @throws UsageError for one that is missing or that it does not take
 */
function checkedArguments(parsed: ParsedFlags<FlagSet>, command: Command, path: string): ParsedFlags<FlagSet> {
  const { arguments: names = [] } = command;
  const missing = names[parsed.rest.length];
  if (missing !== undefined) {
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
