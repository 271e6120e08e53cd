import { parseArgs } from 'node:util';

/**
 * Reads options that take numbers, named by a benchmark's defaults, and options that take texts and may be repeated. Prints
 * the help and returns undefined when asked for it.
 * @throws Error that says what is wrong with the command line
 */
export function scaleOptions<Name extends string, List extends string = never>(
  args: string[],
  help: string,
  defaults: Readonly<Record<Name, number>>,
  lists: readonly List[] = [],
): (Record<Name, number> & Partial<Record<List, string[]>>) | undefined {
  const names = Object.keys(defaults) as Name[];
  const { values } = parseArgs({
    args,
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      ...Object.fromEntries(lists.map((name) => [name, { type: 'string', multiple: true }])),
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return undefined;
  }
  const given = values as Readonly<Record<string, string | undefined>>;
  const texts = values as Partial<Record<List, string[]>>;
  const numbers = names.map((name) => [name, given[name] === undefined ? defaults[name] : amount(name, given[name])]);
  const listed = lists.flatMap((name) => (texts[name] === undefined ? [] : [[name, texts[name]]]));
  return Object.fromEntries([...numbers, ...listed]) as Record<Name, number> & Partial<Record<List, string[]>>;
}

/** A number from a command line that is not negative. @throws Error that names the option */
export function amount(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0 || text.trim() === '') {
    throw new Error(`--${option} takes a number, not "${text}"`);
  }
  return value;
}
