import { parseArgs } from 'node:util';

/** What an option has when it is not given; its kind says what the option takes. */
type Default = number | string | boolean | readonly string[];

/** What a command line says of options with such defaults. */
export type BenchOptions<Defaults extends Readonly<Record<string, Default>>> = {
  readonly [Name in keyof Defaults]: Defaults[Name] extends number
    ? number
    : Defaults[Name] extends string
      ? string
      : Defaults[Name] extends boolean
        ? boolean
        : readonly string[];
};

/**
 * Reads the options of a benchmark, named by their defaults: a number, a text, a flag, or texts where the option may be repeated.
 * Prints the help and returns undefined when asked for it.
 * @throws Error that says what is wrong with the command line
 */
export function benchOptions<Defaults extends Readonly<Record<string, Default>>>(
  args: readonly string[],
  help: string,
  defaults: Defaults,
): BenchOptions<Defaults> | undefined {
  const kinds = Object.entries(defaults).map(([name, value]) => {
    const type = typeof value === 'boolean' ? ('boolean' as const) : ('string' as const);
    return [name, { type, multiple: Array.isArray(value) }] as const;
  });
  const options = { ...Object.fromEntries(kinds), help: { type: 'boolean' as const } };
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) {
    process.stdout.write(help);
    return undefined;
  }
  const read = Object.entries(defaults).map(([name, value]) => {
    const given = (values as Readonly<Record<string, unknown>>)[name] ?? value;
    return [name, typeof value === 'number' ? amount(name, String(given)) : given];
  });
  return Object.fromEntries(read) as BenchOptions<Defaults>;
}

/** A number from a command line that is not negative. @throws Error that names the option */
function amount(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0 || text.trim() === '') {
    // As parseArgs refuses what it does not know.
    const code = 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE';
    throw Object.assign(new TypeError(`--${option} takes a number, not "${text}"`), { code });
  }
  return value;
}
