import { type Executable, type Flag, type FlagSet, formatDuration } from '../lib/ops/index.ts';

/** The reference of all commands of an executable, as Markdown. It is a part of docs/argocd-agentctl.md. */
export function referenceOf(executable: Executable): string {
  const commands = [...executable.commands].sort((a, b) => (a.name < b.name ? -1 : 1));
  return [
    '### Global flags',
    '',
    ...flagTable(executable.flags ?? {}),
    '',
    ...commands.flatMap(({ name, aliases, summary, description, arguments: names = [], flags }) => [
      `### ${name}`,
      '',
      `${summary}.${description === undefined ? '' : ` ${description.replaceAll('\n', ' ')}`}`,
      '',
      '```sh',
      [executable.name, name, ...names, '[flags]'].join(' '),
      '```',
      '',
      ...(aliases === undefined ? [] : [`Also: ${aliases.map((alias) => `\`${alias}\``).join(', ')}`, '']),
      ...(Object.keys(flags).length === 0 ? [] : [...flagTable(flags), '']),
    ]),
  ].join('\n');
}

function flagTable(flags: FlagSet): string[] {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '' : `\`-${flag.short}\`, `;
    const variable = flag.env === undefined ? '' : `; \`${flag.env}\``;
    return `| ${short}\`--${name}\` | ${defaultOf(name, flag)} | ${flag.usage.replaceAll('|', '\\|')}${variable} |`;
  });
  return ['| Flag | Default | |', '|---|---|---|', ...rows];
}

function defaultOf(name: string, flag: Flag<unknown>): string {
  if (flag.type === 'duration') {
    return formatDuration(flag.default as number);
  }
  const value = flag.type === 'strings' ? (flag.default as readonly string[]).join(',') : String(flag.default);
  if (value === '' || value === 'false') {
    return '';
  }
  // Those below the home folder differ from user to user.
  const homes: Readonly<Record<string, string>> = {
    config: '~/.config/argocd-agent/ctl.conf',
    'output-path': '~/.config/argocd-agent/ctl.conf',
    'kubeconfig-path': '~/.kube/config',
  };
  return `\`${homes[name] ?? value}\``;
}
