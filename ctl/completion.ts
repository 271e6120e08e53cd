// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shells write their own variables so
import { childrenOf, type Executable, type Flag } from '../lib/ops/index.ts';
import { globalFlags } from './flags.ts';

/** What may follow words: commands, and flags with a dash. */
interface Place {
  readonly path: string;
  readonly words: readonly { readonly word: string; readonly summary: string }[];
  readonly flags: readonly { readonly name: string; readonly flag: Flag<unknown> }[];
  /** What the argument here names; undefined: nothing that the hub could be asked for. */
  readonly names: NameKind | undefined;
}

/** What `completion names` lists. */
export const nameKinds = ['agents', 'applications'] as const;
export type NameKind = (typeof nameKinds)[number];

/** What an argument names, by its name in the help. */
const namedBy: Readonly<Record<string, NameKind>> = {
  AGENT: 'agents',
  CLUSTER: 'agents',
  '[CLUSTER]': 'agents',
  APPLICATION: 'applications',
};

/** Shells for which there is a script. */
export const shells = ['bash', 'zsh', 'fish'] as const;

/** The script that makes a shell complete the commands and flags of an executable. `program` is the name that is typed. */
export function completionScript(executable: Executable, shell: (typeof shells)[number], program: string): string {
  const places = placesOf(executable);
  switch (shell) {
    case 'bash':
      return bashScript(places, program);
    case 'zsh':
      return zshScript(places, program);
    case 'fish':
      return fishScript(places, program);
  }
}

/** Every place in the table of commands, aliases included. */
function placesOf(executable: Executable): Place[] {
  const named = (flags: object) =>
    Object.entries(flags as Record<string, Flag<unknown>>)
      .filter(([, flag]) => flag.hidden !== true)
      .map(([name, flag]) => ({ name, flag }));
  const groups = ['', ...(executable.groups ?? []).map(({ name }) => name)];
  const paths = new Set([...groups, ...executable.commands.map(({ name }) => name)]);
  return [...paths].flatMap((path) => {
    const command = executable.commands.find(({ name }) => name === path);
    const group = executable.groups?.find(({ name }) => name === path);
    const flags = named({ ...executable.flags, ...command?.flags });
    const words = childrenOf(executable, path);
    const names = namedBy[command?.arguments?.[0] ?? ''];
    return [path, ...(command?.aliases ?? group?.aliases ?? [])].map((each) => ({ path: each, words, flags, names }));
  });
}

const functionName = (program: string) => `_${program.replace(/\W/g, '_')}`;
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function flagWords({ flags }: Place): string[] {
  return flags.flatMap(({ name, flag }) => [`--${name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])]);
}

/** The flags that say which hub is asked for names, and take a value. */
const hubFlags = Object.entries(globalFlags)
  .filter(([name]) => !name.startsWith('agent'))
  .flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);

/** The loop that finds the place by the words before the one that is typed. In zsh the name `path` is taken. */
function findPlace(places: readonly Place[], words: string): string[] {
  const known = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  return [
    "  local where='' word next",
    `  for word in ${words}; do`,
    '    next="${where:+$where }$word"',
    `    case "$next" in ${known.join('|')}) where="$next" ;; esac`,
    '  done',
  ];
}

/** The loop that gathers the flags that say which hub is asked. */
function hubOf(words: string): string[] {
  const flags = hubFlags.join('|');
  const joined = hubFlags.map((flag) => `${flag}=*`).join('|');
  return [
    "    local before=''",
    `    for word in ${words}; do`,
    `      case "$before" in ${flags}) hub+=("$before" "$word") ;; esac`,
    `      case "$word" in ${joined}) hub+=("$word") ;; esac`,
    '      before="$word"',
    '    done',
  ];
}

function bashScript(places: readonly Place[], program: string): string {
  const name = functionName(program);
  const cases = places.map((place) => {
    const words = place.words.map(({ word }) => word);
    const names = place.names === undefined ? '' : ` names=${place.names};`;
    return `    ${quoted(place.path)}) words=${quoted(words.join(' '))};${names} flags=${quoted(flagWords(place).join(' '))} ;;`;
  });
  return [
    `# Completion of ${program} for bash: source it, or put it into /etc/bash_completion.d.`,
    `${name}() {`,
    '  local current="${COMP_WORDS[COMP_CWORD]}" words flags names hub=()',
    ...findPlace(places, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"'),
    '  case "$where" in',
    ...cases,
    '  esac',
    '  if [[ "$current" == -* ]]; then',
    '    words="$flags"',
    '  elif [ -n "$names" ]; then',
    ...hubOf('"${COMP_WORDS[@]:1:COMP_CWORD-1}"'),
    '    words="$("${COMP_WORDS[0]}" completion names "$names" "${hub[@]}" 2>/dev/null)"',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    `complete -o default -F ${name} ${program}`,
    '',
  ].join('\n');
}

function zshScript(places: readonly Place[], program: string): string {
  const name = functionName(program);
  const described = (word: string, text: string) => quoted(`${word.replaceAll(':', '\\:')}:${text}`);
  const cases = places.map((place) => {
    const words = place.words.map(({ word, summary }) => described(word, summary));
    const flags = place.flags.map((one) => described(`--${one.name}`, one.flag.usage));
    const names = place.names === undefined ? '' : ` names=${place.names};`;
    return `    ${quoted(place.path)}) commands=(${words.join(' ')});${names} flags=(${flags.join(' ')}) ;;`;
  });
  return [
    `#compdef ${program}`,
    `# Completion of ${program} for zsh: put it as _${program} into a folder of $fpath, or source it after compinit.`,
    `${name}() {`,
    '  local -a commands flags found hub',
    "  local names=''",
    ...findPlace(places, '"${(@)words[2,CURRENT-1]}"'),
    '  case "$where" in',
    ...cases,
    '  esac',
    '  if [[ "${words[CURRENT]}" == -* ]]; then',
    "    _describe 'flag' flags",
    '  elif (( ${#commands} )); then',
    "    _describe 'command' commands",
    '  elif [[ -n "$names" ]]; then',
    ...hubOf('"${(@)words[2,CURRENT-1]}"'),
    '    found=("${(@f)$("${words[1]}" completion names "$names" "${hub[@]}" 2>/dev/null)}")',
    '    compadd -a found',
    '  else',
    '    _files',
    '  fi',
    '}',
    `if [ "\${funcstack[1]}" = ${quoted(`_${program}`)} ]; then ${name} "$@"; else compdef ${name} ${program}; fi`,
    '',
  ].join('\n');
}

function fishScript(places: readonly Place[], program: string): string {
  const name = `_${functionName(program)}_at`;
  const known = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const lines = places.flatMap(({ path, words, flags, names }) => {
    const at = `complete -c ${program} -n ${quoted(`${name} "${path}"`)}`;
    return [
      ...words.map(({ word, summary }) => `${at} -f -a ${quoted(word)} -d ${quoted(summary)}`),
      ...(names === undefined ? [] : [`${at} -f -a ${quoted(`(${name}_names ${names})`)}`]),
      ...flags.map(({ name: long, flag }) => {
        const short = flag.short === undefined ? '' : ` -s ${flag.short}`;
        return `${at} -l ${long}${short}${flag.type === 'bool' ? '' : ' -r'} -d ${quoted(flag.usage)}`;
      }),
    ];
  });
  return [
    `# Completion of ${program} for fish: put it as ${program}.fish into ~/.config/fish/completions.`,
    `function ${name}`,
    "  set -l path ''",
    '  for word in (commandline -opc)[2..-1]',
    '    set -l next (string trim "$path $word")',
    `    if contains -- "$next" ${known.join(' ')}`,
    '      set path $next',
    '    end',
    '  end',
    '  test "$path" = "$argv[1]"',
    'end',
    `function ${name}_names`,
    "  set -l hub; set -l before ''",
    '  for word in (commandline -opc)[2..-1]',
    `    if contains -- "$before" ${hubFlags.join(' ')}`,
    '      set -a hub $before $word',
    `    else if string match -qr -- ${quoted(`^(${hubFlags.join('|')})=`)} "$word"`,
    '      set -a hub $word',
    '    end',
    '    set before $word',
    '  end',
    '  (commandline -opc)[1] completion names $argv[1] $hub 2>/dev/null',
    'end',
    ...lines,
    '',
  ].join('\n');
}
