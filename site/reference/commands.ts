import { homedir } from 'node:os';
import type { Command, Executable, Flag, FlagSet } from '../../lib/ops/index.ts';
import { cell, generated } from './markdown.ts';

/** The page of an executable: its commands with every flag that the help shows, in Markdown. */
export function commandsPage(executable: Executable): string {
  return [
    `# ${executable.name}`,
    '',
    generated,
    '',
    `${executable.summary}.`,
    '',
    'A flag wins over its environment variable, which wins over the default. Durations have a unit: `90s`, `5m`, `1h30m`. Lists',
    'are separated by commas, or the flag is repeated.',
    '',
    ...flagTable('Flags of every command:', executable.flags ?? {}),
    ...executable.commands
      .toSorted((one, other) => (one.name < other.name ? -1 : 1))
      .flatMap((command) => section(executable, command)),
  ].join('\n');
}

function section(executable: Executable, command: Command): string[] {
  const { name, summary, description, aliases = [], flags } = command;
  const usage = [
    executable.name,
    name,
    ...(command.arguments ?? []),
    ...(Object.keys(flags).length > 0 ? ['[flags]'] : []),
  ];
  return [
    `## ${name}`,
    '',
    `${summary}.${description === undefined ? '' : ` ${description}`}`,
    '',
    '```',
    usage.join(' '),
    '```',
    '',
    ...(aliases.length === 0 ? [] : [`Also: ${aliases.map((alias) => `\`${alias}\``).join(', ')}.`, '']),
    ...flagTable('', flags),
    ...unsupported(command),
  ];
}

function flagTable(title: string, flags: FlagSet): string[] {
  const rows = Object.entries(flags)
    .filter(([, flag]) => flag.hidden !== true)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, flag]) => row(name, flag));
  return rows.length === 0 ? [] : [...(title === '' ? [] : [title, '']), '| Flag | |', '|---|---|', ...rows, ''];
}

function row(name: string, flag: Flag<unknown>): string {
  const short = flag.short === undefined ? '' : `, \`-${flag.short}\``;
  const type = flag.type === 'strings' ? 'list' : flag.type;
  // Defaults below the home folder differ from user to user.
  const initial = flag.format(flag.default).replace(homedir(), '~');
  const facts = [
    ...(['""', '[]', 'false'].includes(initial) ? [] : [`Default: \`${initial}\`.`]),
    ...(flag.env === undefined ? [] : [`Environment: \`${flag.env}\`.`]),
  ];
  const usage = `${flag.usage.charAt(0).toUpperCase()}${flag.usage.slice(1)}.`;
  return `| \`--${name}\`${short} ${type} | ${[cell(usage), ...facts].join(' ')} |`;
}

function unsupported({ unsupported: flags = {} }: Command): string[] {
  const names = Object.keys(flags).map((name) => `\`--${name}\``);
  return names.length === 0
    ? []
    : [`Flags of the original for features that this version does not have: ${names.join(', ')}.`, ''];
}
