import { parseArgs } from 'node:util';
import { amount } from '../load/options.ts';

/**
 * Reads options that take numbers; a benchmark's defaults name them. Prints the help and returns undefined when asked for it.
 * @throws Error that says what is wrong with the command line
 */
export function scaleOptions<Name extends string>(
  args: string[],
  help: string,
  defaults: Readonly<Record<Name, number>>,
): Record<Name, number> | undefined {
  const names = Object.keys(defaults) as Name[];
  const { values } = parseArgs({
    args,
    options: { ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])), help: { type: 'boolean' } },
  });
  if (values.help) {
    process.stdout.write(help);
    return undefined;
  }
  const given = values as Readonly<Record<string, string | undefined>>;
  const numbers = names.map((name) => [name, given[name] === undefined ? defaults[name] : amount(name, given[name])]);
  return Object.fromEntries(numbers) as Record<Name, number>;
}
