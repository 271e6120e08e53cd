import { formatDuration, parseDuration } from './duration.ts';
import { UsageError } from './errors.ts';

/** One command-line flag: how its text becomes a value, and where the value comes from when the flag is absent. */
export interface Flag<T> {
  readonly type: 'string' | 'bool' | 'int' | 'duration' | 'strings';
  readonly usage: string;
  readonly default: T;
  /** Environment variable that replaces the default. */
  readonly env?: string;
  /** One letter for `-x`. */
  readonly short?: string;
  /** Not in the help text; accepted all the same. */
  readonly hidden?: boolean;
  /** @throws RangeError that says what is wrong with the text. */
  parse(text: string): T;
  /** As `parse`, for the environment's text, whose grammar differs for lists. */
  parseEnv(text: string): T;
  format(value: T): string;
}

/** What every kind of flag can be given. */
export interface FlagOptions<T> {
  usage: string;
  default?: T;
  env?: string;
  short?: string;
  hidden?: boolean;
  /** Returns what is wrong with a value, or undefined. */
  check?: (value: T) => string | undefined;
}

/** A set of flags by name, without the dashes. */
export type FlagSet = Readonly<Record<string, Flag<unknown>>>;
/** The values of a flag set, by flag name. */
export type FlagValues<F extends FlagSet> = { readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never };

function flag<T>(
  type: Flag<T>['type'],
  fallback: T,
  options: FlagOptions<T>,
  parse: (text: string) => T,
  format: (value: T) => string,
  parseEnv: (text: string) => T = parse,
): Flag<T> {
  const checked = (read: (text: string) => T) => (text: string) => {
    const value = read(text);
    const problem = options.check?.(value);
    if (problem !== undefined) {
      throw new RangeError(problem);
    }
    return value;
  };
  return {
    type,
    usage: options.usage,
    default: options.default ?? fallback,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.short === undefined ? {} : { short: options.short }),
    ...(options.hidden === undefined ? {} : { hidden: options.hidden }),
    parse: checked(parse),
    parseEnv: checked(parseEnv),
    format,
  };
}

/** Text, taken as it is; an environment variable set to nothing overrides the default with nothing. */
export function stringFlag(options: FlagOptions<string>): Flag<string> {
  return flag('string', '', options, (text) => text, JSON.stringify);
}

/** Go's `strconv.ParseBool`. */
export function boolFlag(options: FlagOptions<boolean>): Flag<boolean> {
  const parse = (text: string): boolean => {
    if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) {
      return true;
    }
    if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text)) {
      return false;
    }
    throw new RangeError('must be true or false');
  };
  return flag('bool', false, options, parse, String);
}

/** A whole number, decimal or with Go's base prefixes (`0x`, `0o`, `0b`). */
export function intFlag(options: FlagOptions<number>): Flag<number> {
  const parse = (text: string): number => {
    const body = text.replace(/^[+-]/, '');
    const value = /^(\d+|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(body)
      ? /^0\d+$/.test(body)
        ? Number.parseInt(body, 8)
        : Number(body)
      : Number.NaN;
    if (!Number.isSafeInteger(value)) {
      throw new RangeError('must be a whole number');
    }
    return text.startsWith('-') ? -value : value;
  };
  return flag('int', 0, options, parse, String);
}

/** A duration in Go's syntax; the value is in milliseconds. */
export function durationFlag(options: FlagOptions<number>): Flag<number> {
  return flag('duration', 0, options, parseDuration, formatDuration);
}

/**
 * A list: comma separated (quotes as in CSV), repeatable; the first use replaces the default and later uses append. In the
 * environment: split at commas and trimmed.
 */
export function listFlag(options: FlagOptions<readonly string[]>): Flag<readonly string[]> {
  return flag(
    'strings',
    [] as readonly string[],
    options,
    splitCsv,
    (value) => `[${value.join(',')}]`,
    (text) => text.split(',').map((element) => element.trim()),
  );
}

function splitCsv(text: string): string[] {
  if (text === '') {
    return [];
  }
  const elements: string[] = [];
  let rest = text;
  for (;;) {
    const quoted = /^"((?:[^"]|"")*)"(,|$)/.exec(rest);
    const plain = /^([^,]*)(,|$)/.exec(rest);
    const match = quoted ?? plain;
    if (match === null) {
      throw new RangeError('is not a comma-separated list');
    }
    elements.push(quoted === null ? (match[1] ?? '') : (match[1] ?? '').replaceAll('""', '"'));
    rest = rest.slice(match[0].length);
    if (match[2] !== ',') {
      return elements;
    }
  }
}

/** What `parseFlags` found. */
export interface ParsedFlags<F extends FlagSet> {
  readonly values: FlagValues<F>;
  /** Names of the flags that the command line gave. */
  readonly given: ReadonlySet<string>;
  /** Names of the flags that the environment gave. */
  readonly fromEnvironment: ReadonlySet<string>;
  /** Arguments that are not flags. */
  readonly rest: readonly string[];
  /** Environment variables that could not be parsed; their defaults are used, as the originals do. */
  readonly warnings: readonly string[];
}

/** What `parseFlags` reads from. */
export interface ParseOptions {
  args: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Flags of the originals whose feature this program does not have: naming one is an error that says so. */
  unsupported?: ReadonlySet<string>;
}

/**
 * Reads flags as the originals (cobra) do: `--flag value`, `--flag=value`, `--bool`, `--bool=false`, `-n value`, `--` ends
 * the flags. A whole name after one dash is a flag too, as with Go's own parser. A flag wins over its environment variable, which wins over the default. A bad flag is an error. A boolean,
 * number or duration in the environment that cannot be parsed is a warning, and the default is used. A text in the
 * environment is taken as it is, so a value that its flag does not allow is an error.
 * @throws UsageError that names the flag or the environment variable
 */
export function parseFlags<F extends FlagSet>(flags: F, options: ParseOptions): ParsedFlags<F> {
  const values: Record<string, unknown> = {};
  const warnings: string[] = [];
  const fromEnvironment = new Set<string>();
  /** What is wrong with texts of the environment, by flag; it matters unless the command line gives the flag. */
  const unusable = new Map<string, string>();
  const shorts = new Map<string, string>();
  for (const [name, flag] of Object.entries(flags)) {
    values[name] = flag.default;
    if (flag.short !== undefined) {
      shorts.set(flag.short, name);
    }
    const text = flag.env === undefined ? undefined : options.env[flag.env];
    if (text === undefined) {
      continue;
    }
    try {
      values[name] = flag.parseEnv(text);
      fromEnvironment.add(name);
    } catch (error) {
      if (flag.type === 'string') {
        const reason = (error as Error).message;
        unusable.set(name, `invalid value ${JSON.stringify(text)} of ${flag.env} (--${name}): ${reason}`);
        continue;
      }
      warnings.push(
        `environment variable ${flag.env} = ${JSON.stringify(text)} is ignored and the default ${flag.format(flag.default)} is used: ${(error as Error).message}`,
      );
    }
  }
  const given = new Set<string>();
  const rest: string[] = [];
  const queue = [...options.args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === '--') {
      rest.push(...queue);
      break;
    }
    if (!arg.startsWith('-') || arg === '-') {
      rest.push(arg);
      continue;
    }
    const equals = arg.indexOf('=');
    const label = equals === -1 ? arg : arg.slice(0, equals);
    let name = label.slice(2);
    let text = equals === -1 ? undefined : arg.slice(equals + 1);
    const long = label.slice(1);
    if (!arg.startsWith('--') && long.length > 1 && Object.hasOwn(flags, long)) {
      name = long;
    } else if (!arg.startsWith('--')) {
      const letter = arg.charAt(1);
      name = shorts.get(letter) ?? '';
      if (name === '') {
        throw new UsageError(`unknown shorthand flag: '${letter}' in ${arg}`);
      }
      text = arg.length > 2 ? arg.slice(2).replace(/^=/, '') : undefined;
    }
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) {
      if (options.unsupported?.has(name)) {
        throw new UsageError(`--${name} is not supported by this version`);
      }
      throw new UsageError(`unknown flag: --${name}${closest(name, Object.keys(flags))}`);
    }
    if (text === undefined) {
      if (flag.type === 'bool') {
        text = 'true';
      } else {
        text = queue.shift();
        if (text === undefined) {
          throw new UsageError(`flag needs an argument: ${label}`);
        }
      }
    }
    let value: unknown;
    try {
      value = flag.parse(text);
    } catch (error) {
      throw new UsageError(
        `invalid argument ${JSON.stringify(text)} for "--${name}" flag: ${(error as Error).message}`,
      );
    }
    values[name] =
      flag.type === 'strings' && given.has(name)
        ? [...(values[name] as readonly string[]), ...(value as readonly string[])]
        : value;
    given.add(name);
  }
  for (const [name, problem] of unusable) {
    if (!given.has(name)) {
      throw new UsageError(problem);
    }
  }
  return { values: values as FlagValues<F>, given, fromEnvironment, rest, warnings };
}

function closest(name: string, known: readonly string[]): string {
  const best = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return best !== undefined && best.distance <= 2 ? ` (did you mean --${best.candidate}?)` : '';
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
