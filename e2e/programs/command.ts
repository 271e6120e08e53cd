import { join } from 'node:path';

/** An executable of this project. */
export type ProgramName = 'argocd-agent' | 'argocd-agentctl' | 'gitops-controller';

/** The environment variable with the folder of a build of the project. */
export const buildVariable = 'PROJECT_BUILD';

/**
 * The command that runs a program of this project as a process of its own: from the build that the tier made before its
 * tests, which starts in a fifth of the CPU time; where there is none, from the sources.
 */
export function programCommand(name: ProgramName): [node: string, file: string] {
  const build = process.env[buildVariable];
  const file = build ? join(build, 'bin', `${name}.js`) : join(import.meta.dirname, '../../bin', `${name}.ts`);
  return [process.execPath, file];
}
