import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { boolFlag, FatalError, stringFlag, UsageError } from '../../lib/ops/index.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { defaultConfigPath } from '../flags.ts';
import { checkConfig, emptyConfig, type LocalConfig, readCtlConfig, writeCtlConfig } from '../local-config.ts';
import { inFormat, outputFlag, textTable } from '../output.ts';
import { openPrompt } from '../prompt.ts';

const kinds = ['principal', 'agent'] as const;
type Kind = (typeof kinds)[number];

const nameFlag = (what: string) => stringFlag({ usage: `name of the ${what}` });
const placeFlags = {
  context: stringFlag({ usage: 'kube context' }),
  namespace: stringFlag({ usage: 'namespace' }),
};
const setDefault = { 'set-default': boolFlag({ usage: 'use it when no principal is named' }) };
type Values = { readonly name: string; readonly context: string; readonly namespace: string };

const entriesOf = (config: LocalConfig, kind: Kind) => (kind === 'principal' ? config.principals : config.agents);
const capital = (kind: Kind) => (kind === 'principal' ? 'Principal' : 'Agent');

/** The commands about the configuration file of this tool. */
export const configCommands = [
  ctlCommand({
    name: 'config create',
    summary: 'Make the configuration file from the contexts of a kubeconfig file, by questions',
    ignoresConfig: true,
    flags: {
      'kubeconfig-path': stringFlag({ usage: 'kubeconfig file', default: join(homedir(), '.kube', 'config') }),
      'output-path': stringFlag({ usage: 'file to write', default: defaultConfigPath() }),
    },
    run: createConfig,
  }),
  ...kinds.map((kind) =>
    ctlCommand({
      name: `config add ${kind}`,
      summary: `Add ${kind === 'agent' ? 'an agent' : 'a principal'}`,
      ignoresConfig: true,
      flags: { name: nameFlag(kind), ...placeFlags, ...(kind === 'principal' ? setDefault : {}) },
      run: async (flags, ctl) => {
        requireFlags(ctl, ['name', 'context', 'namespace']);
        const config = await load(ctl);
        const { name, context, namespace } = flags as unknown as Values;
        if (entriesOf(config, kind).has(name)) {
          throw new FatalError(`${kind === 'agent' ? 'An agent' : 'A principal'} with the name ${name} already exists`);
        }
        entriesOf(config, kind).set(name, { context, namespace });
        await save(ctl, config, flags, name);
        ctl.print(`New ${kind} ${name} added successfully\n`);
      },
    }),
  ),
  ...kinds.map((kind) =>
    ctlCommand({
      name: `config edit ${kind}`,
      summary: `Change ${kind === 'agent' ? 'an agent' : 'a principal'}`,
      ignoresConfig: true,
      flags: { name: nameFlag(kind), ...placeFlags, ...(kind === 'principal' ? setDefault : {}) },
      run: async (flags, ctl) => {
        requireFlags(ctl, ['name']);
        const config = await load(ctl);
        const { name, context, namespace } = flags as unknown as Values;
        const known = existing(config, kind, name);
        entriesOf(config, kind).set(name, {
          context: context || known.context,
          namespace: namespace || known.namespace,
        });
        await save(ctl, config, flags, name);
        ctl.print(`${capital(kind)} ${name} updated successfully\n`);
      },
    }),
  ),
  ...kinds.map((kind) =>
    ctlCommand({
      name: `config delete ${kind}`,
      summary: `Remove ${kind === 'agent' ? 'an agent' : 'a principal'}`,
      ignoresConfig: true,
      flags: { name: nameFlag(kind) },
      run: async ({ name }, ctl) => {
        requireFlags(ctl, ['name']);
        const config = await load(ctl);
        existing(config, kind, name);
        if (kind === 'principal' && config.defaultPrincipal === name) {
          throw new FatalError('Cannot delete the default principal');
        }
        entriesOf(config, kind).delete(name);
        await save(ctl, config, {}, name);
        ctl.print(`${capital(kind)} ${name} deleted successfully\n`);
      },
    }),
  ),
  ctlCommand({
    name: 'config list',
    summary: 'List principals and agents',
    ignoresConfig: true,
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      const config = await load(ctl);
      const rows = kinds.flatMap((kind) =>
        [...entriesOf(config, kind)].map(([name, { context, namespace }]) => [kind, name, context, namespace]),
      );
      ctl.print(listed(['component', 'name', 'context', 'namespace'], rows, output));
    },
  }),
  ctlCommand({
    name: 'config list principal',
    summary: 'List principals',
    ignoresConfig: true,
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      const { principals, defaultPrincipal } = await load(ctl);
      const rows = [...principals].map(([name, { context, namespace }]) => [
        name,
        context,
        namespace,
        name === defaultPrincipal ? 'X' : '',
      ]);
      ctl.print(listed(['name', 'context', 'namespace', 'default'], rows, output));
    },
  }),
  ctlCommand({
    name: 'config list agent',
    summary: 'List agents',
    ignoresConfig: true,
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      const { agents } = await load(ctl);
      const rows = [...agents].map(([name, { context, namespace }]) => [name, context, namespace]);
      ctl.print(listed(['name', 'context', 'namespace'], rows, output));
    },
  }),
];

/** Rows with a name for each column: a table, or a list of objects. */
function listed(columns: readonly string[], rows: readonly (readonly string[])[], output: string): string {
  const objects = rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]])));
  return inFormat(objects, output, () => textTable([columns.map((column) => column.toUpperCase()), ...rows]));
}

/** @throws UsageError that names the flags which are missing */
function requireFlags({ given }: Ctl, wanted: readonly string[]): void {
  const missing = wanted.filter((name) => !given.has(name)).map((name) => `"${name}"`);
  if (missing.length > 0) {
    throw new UsageError(`required flag(s) ${missing.join(', ')} not set`);
  }
}

async function load({ configPath }: Ctl): Promise<LocalConfig> {
  const config = await readCtlConfig(configPath).catch((cause: unknown) => {
    throw new FatalError(`Failed to read config: ${(cause as Error).message}`, { cause });
  });
  if (config === undefined) {
    throw new FatalError(
      `Failed to read config: ${configPath} does not exist; make it with argocd-agentctl config create`,
    );
  }
  return config;
}

function existing(config: LocalConfig, kind: Kind, name: string) {
  const found = entriesOf(config, kind).get(name);
  if (found === undefined) {
    throw new FatalError(`The ${kind} ${name} does not exist in the config`);
  }
  return found;
}

async function save(ctl: Ctl, config: LocalConfig, flags: object, name: string): Promise<void> {
  if ('set-default' in flags && flags['set-default'] === true) {
    config.defaultPrincipal = name;
  }
  checkConfig(config);
  await writeCtlConfig(ctl.configPath, config).catch((cause: unknown) => {
    throw new FatalError(`Failed to write config: ${(cause as Error).message}`, { cause });
  });
}

const kubeconfigSchema = z.object({ contexts: z.array(z.object({ name: z.string() })).nullish() });

async function createConfig(
  flags: { readonly 'kubeconfig-path': string; readonly 'output-path': string },
  ctl: Ctl,
): Promise<void> {
  let contexts: string[];
  try {
    const parsed = kubeconfigSchema.parse(parse(await readFile(flags['kubeconfig-path'], 'utf8')) ?? {});
    contexts = (parsed.contexts ?? []).map(({ name }) => name);
  } catch (cause) {
    throw new FatalError(`Failed to load kubeconfig: ${(cause as Error).message}`, { cause });
  }
  const config = emptyConfig();
  const prompt = openPrompt(ctl);
  const isWord = (answer: string) => answer.trim() !== '' && !answer.trim().includes(' ');
  try {
    for (const context of contexts) {
      const kind = await prompt.askFor(
        `Found context ${context}, is this a principal or agent? If is neither type leave blank to skip.: `,
        (answer) => ['principal', 'agent', ''].includes(answer),
      );
      if (kind !== '') {
        const known = entriesOf(config, kind as Kind);
        const namespace = (await prompt.askFor(`Which namespace is the ${kind} installed in?: `, isWord)).trim();
        const name = await prompt.askFor(
          `What name would you like to use for this ${kind}?: `,
          (answer) => isWord(answer) && !known.has(answer.trim()),
        );
        known.set(name.trim(), { context, namespace });
      }
      ctl.print('\n');
    }
    if (config.principals.size > 0) {
      ctl.print([...config.principals.keys()].map((name) => `> ${name}\n`).join(''));
      const chosen = await prompt.askFor(
        'Which of the above principals do you want to use as the default?: ',
        (answer) => config.principals.has(answer.trim()),
      );
      config.defaultPrincipal = chosen.trim();
      ctl.print('\n');
    }
  } finally {
    prompt.close();
  }
  await writeCtlConfig(flags['output-path'], config).catch((cause: unknown) => {
    throw new FatalError(`Error writing config: ${(cause as Error).message}`, { cause });
  });
  ctl.print(`Successfully wrote config to ${flags['output-path']}\n`);
}
