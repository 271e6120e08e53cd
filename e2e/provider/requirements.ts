import { findEngine, NoEngineError, type Runner, runCommand } from '../image/index.ts';

/** What the kind provider cannot do without, and what to do about it. */
export class KindRequirementError extends Error {
  override readonly name = 'KindRequirementError';

  constructor(missing: readonly string[]) {
    super(
      `--provider kind needs what is not here:\n${missing.map((line) => `  ${line}`).join('\n')}\n` +
        'Without a container engine, the usual provider (--provider local) runs the same on plain processes.',
    );
  }
}

const programs = {
  kind: { args: ['version'], hint: 'https://kind.sigs.k8s.io' },
  clusteradm: { args: ['version'], hint: 'https://open-cluster-management.io' },
} as const;

/**
 * Looks for Docker, kind and clusteradm. Podman is no substitute: kind takes no images from it.
 * @throws KindRequirementError that names everything that is missing at once
 */
export async function checkKind(runner: Runner = runCommand): Promise<void> {
  const missing: string[] = [];
  try {
    await findEngine(['docker'], runner);
  } catch (error) {
    if (!(error instanceof NoEngineError)) throw error;
    missing.push(`a container engine: ${error.problems.join('; ')}`);
  }
  for (const [name, { args, hint }] of Object.entries(programs)) {
    try {
      await runner(name, args);
    } catch (error) {
      // Without a cluster, clusteradm prints its own version and then fails.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') missing.push(`${name}: not installed (${hint})`);
    }
  }
  if (missing.length > 0) throw new KindRequirementError(missing);
}
