import { findEngine, NoEngineError, type Runner, runCommand } from '../image/index.ts';
import { type KindEngine, kindEngines } from './kind-commands.ts';

/** What the kind provider cannot do without, and what to do about it. */
export class KindRequirementError extends Error {
  override readonly name = 'KindRequirementError';

  constructor(missing: readonly string[]) {
    super(
      `the provider kind needs what is not here:\n${missing.map((line) => `  ${line}`).join('\n')}\n` +
        'Without a container engine, the usual provider (local) runs the same on plain processes.',
    );
  }
}

const programs = {
  kind: { args: ['version'], hint: 'https://kind.sigs.k8s.io' },
  clusteradm: { args: ['version'], hint: 'https://open-cluster-management.io' },
} as const;

/**
 * Looks for a container engine that kind works with, kind and clusteradm.
 * @returns the engine
 * @throws KindRequirementError that names everything that is missing at once
 */
export async function checkKind(runner: Runner = runCommand): Promise<KindEngine> {
  const missing: string[] = [];
  let engine: KindEngine | undefined;
  try {
    engine = await findEngine(kindEngines, runner);
  } catch (error) {
    if (!(error instanceof NoEngineError)) {
      throw error;
    }
    missing.push(`a container engine: ${error.problems.join('; ')}`);
  }
  for (const [name, { args, hint }] of Object.entries(programs)) {
    try {
      await runner(name, args);
    } catch (error) {
      // Without a cluster, clusteradm prints its own version and then fails.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        missing.push(`${name}: not installed (${hint})`);
      }
    }
  }
  if (engine === undefined || missing.length > 0) {
    throw new KindRequirementError(missing);
  }
  return engine;
}
