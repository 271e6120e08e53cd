import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { kubeClient } from '../lib/bridge/index.ts';
import type { KubeClient } from '../lib/kube/index.ts';
import { type Command, FatalError, type FlagSet, type FlagValues, printableLines } from '../lib/ops/index.ts';
import type { globalFlags } from './flags.ts';
import { type CtlTarget, configProblem, emptyConfig, readCtlConfig } from './local-config.ts';

/** One side of an agent: the hub, or the cluster. */
export interface Side extends CtlTarget {
  readonly client: KubeClient;
}

/** What a command works with. */
export interface Ctl {
  readonly args: readonly string[];
  /** Names of the flags on the command line. */
  readonly given: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly stdin: NodeJS.ReadableStream;
  /** Prints on standard output. Nothing in it steers the terminal. */
  readonly print: (text: string) => void;
  /** Empties the terminal. */
  readonly clear: () => void;
  /** Prints a line on standard error. */
  readonly say: (line: string) => void;
  /** The configuration file. */
  readonly configPath: string;
  /** The principal's side. @throws FatalError when its kubeconfig cannot be used */
  principal(): Side;
  /** The agent's side. @throws FatalError when its kubeconfig cannot be used */
  agent(): Side;
  /** Where the sides are, without connecting to them; an empty context is the current one. */
  readonly targets: Targets;
}

type GlobalValues = FlagValues<typeof globalFlags>;
/** Where principal and agent are. */
export interface Targets {
  readonly principal: CtlTarget;
  readonly agent: CtlTarget;
}

/** A command of this tool. It gets the sides as flags, environment and configuration file name them. */
export function ctlCommand<F extends FlagSet>(
  definition: Omit<Command<F>, 'run'> & {
    /** Whether the command must work whatever the configuration file holds. */
    readonly ignoresConfig?: boolean;
    readonly run: (flags: FlagValues<F> & { readonly kubeconfig: string }, ctl: Ctl) => Promise<void>;
  },
): Command<F> {
  return {
    ...definition,
    run: async (values, { parsed, signal, stdin, stdout, stderr }) => {
      const flags = values as FlagValues<F> & GlobalValues;
      const say = (line: string) => stderr(printableLines(`${line}\n`));
      const targets = definition.ignoresConfig
        ? { principal: { context: '', namespace: '' }, agent: { context: '', namespace: '' } }
        : await targetsOf(flags, say);
      const open = (target: CtlTarget): Side => ({
        ...target,
        client: kubeClient({ kubeconfig: fileFor(flags.kubeconfig, target.context), kubecontext: target.context }),
      });
      const sides = new Map<CtlTarget, Side>();
      const once = (target: CtlTarget): Side => {
        const side = sides.get(target) ?? open(target);
        sides.set(target, side);
        return side;
      };
      try {
        await definition.run(flags, {
          args: parsed.rest,
          given: parsed.given,
          signal,
          stdin,
          print: (text) => stdout(printableLines(text)),
          clear: () => stdout('\u001b[H\u001b[2J'),
          say,
          configPath: flags.config,
          principal: () => once(targets.principal),
          agent: () => once(targets.agent),
          targets,
        });
      } finally {
        await Promise.all([...sides.values()].map(({ client }) => client.close()));
      }
    },
  };
}

/** A context that is named is looked for in a file, also in a pod, whose own account would do without one. */
function fileFor(kubeconfig: string, context: string): string {
  if (kubeconfig !== '' || context === '' || process.env.KUBECONFIG) {
    return kubeconfig;
  }
  const own = join(homedir(), '.kube', 'config');
  return existsSync(own) ? own : kubeconfig;
}

/**
 * Flags and environment first, then the name of a flag in the configuration file, then its default principal, then kubectl's
 * current context.
 */
async function targetsOf(flags: GlobalValues, say: (line: string) => void): Promise<Targets> {
  let config = await readCtlConfig(flags.config).catch((cause: unknown) => {
    throw new FatalError(`An error occurred while reading config: ${(cause as Error).message}`, { cause });
  });
  const problem = config && configProblem(config);
  if (problem !== undefined) {
    say(`[WARN]: ${problem}, defaulting to using no config`);
  }
  config = problem === undefined && config !== undefined ? config : emptyConfig();
  const context = flags['principal-context'] || flags.context;
  const namespace = flags.namespace || flags['principal-namespace'];
  const named = (kind: 'Principal' | 'Agent', name: string, all: ReadonlyMap<string, CtlTarget>) => {
    const found = all.get(name);
    if (name !== '' && found === undefined) {
      throw new FatalError(`${kind} ${name} does not exist in config`);
    }
    return found;
  };
  const configured =
    context === ''
      ? (named('Principal', flags.principal, config.principals) ?? config.principals.get(config.defaultPrincipal))
      : undefined;
  const agentContext = flags['agent-context'];
  const configuredAgent = agentContext === '' ? named('Agent', flags.agent, config.agents) : undefined;
  return {
    principal:
      configured === undefined
        ? { context, namespace }
        : { ...configured, ...(flags.namespace === '' ? {} : { namespace: flags.namespace }) },
    agent: configuredAgent ?? { context: agentContext, namespace: flags['agent-namespace'] },
  };
}
