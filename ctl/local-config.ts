import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { FatalError } from '../lib/ops/index.ts';

const component = z.object({ 'kube-context': z.string().default(''), namespace: z.string().default('') });
const components = z
  .record(z.string(), component)
  .nullish()
  .transform((value) => new Map(Object.entries(value ?? {})));
const schema = z.object({
  contexts: z.object({ principals: components, agents: components }).nullish(),
  'default-principal': z.string().nullish(),
});

/** Where a principal or agent is. */
export interface CtlTarget {
  readonly context: string;
  readonly namespace: string;
}

/** The configuration file of this tool: names of principals and agents. */
export interface LocalConfig {
  readonly principals: Map<string, CtlTarget>;
  readonly agents: Map<string, CtlTarget>;
  /** Empty without one. */
  defaultPrincipal: string;
}

/** A configuration without entries. */
export function emptyConfig(): LocalConfig {
  return { principals: new Map(), agents: new Map(), defaultPrincipal: '' };
}

/**
 * Reads the file; undefined when it does not exist.
 * @throws Error when it cannot be read or is not of this form
 */
export async function readCtlConfig(path: string): Promise<LocalConfig | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return undefined;
    }
    throw error;
  }
  const parsed = schema.safeParse(parse(text) ?? {});
  if (!parsed.success) {
    throw new Error(`${path}: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
  }
  const { contexts } = parsed.data;
  const entries = (found: ReadonlyMap<string, z.output<typeof component>> | undefined) =>
    new Map(
      [...(found ?? [])].map(([name, one]) => [name, { context: one['kube-context'], namespace: one.namespace }]),
    );
  return {
    principals: entries(contexts?.principals),
    agents: entries(contexts?.agents),
    defaultPrincipal: parsed.data['default-principal'] ?? '',
  };
}

/** Writes the file, for its owner alone, and the folders on the way to it. */
export async function writeCtlConfig(path: string, config: LocalConfig): Promise<void> {
  const entries = (found: ReadonlyMap<string, CtlTarget>) =>
    Object.fromEntries(
      [...found].map(([name, { context, namespace }]) => [name, { 'kube-context': context, namespace }]),
    );
  const document = {
    contexts: { principals: entries(config.principals), agents: entries(config.agents) },
    'default-principal': config.defaultPrincipal,
  };
  await mkdir(dirname(path), { recursive: true, mode: 0o744 });
  await writeFile(path, stringify(document), { mode: 0o600 });
}

/** What is wrong with a configuration; undefined when nothing is. */
export function configProblem({ principals, agents, defaultPrincipal }: LocalConfig): string | undefined {
  for (const [kind, all] of [
    ['agent', agents],
    ['principal', principals],
  ] as const) {
    for (const [name, { context, namespace }] of all) {
      if (name === '') {
        return `invalid config: ${kind} name cannot be empty`;
      }
      if (context === '' || namespace === '') {
        return `invalid config: ${kind} ${name} has blank ${context === '' ? 'kube-context' : 'namespace'}`;
      }
    }
  }
  return defaultPrincipal === '' || principals.has(defaultPrincipal)
    ? undefined
    : `invalid config: the default principal ${defaultPrincipal} does not exist in principal contexts`;
}

/** @throws FatalError for a configuration that nobody could use */
export function checkConfig(config: LocalConfig): void {
  const problem = configProblem(config);
  if (problem !== undefined) {
    throw new FatalError(problem);
  }
}
