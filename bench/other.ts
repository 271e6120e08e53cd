import { execFileSync } from 'node:child_process';
import type { Originals } from '../e2e/pair/index.ts';

/**
 * Executables of another implementation that a benchmark runs instead of this project's programs: `PRINCIPAL_CMD` and
 * `AGENT_CMD` in the environment, each the path of an `argocd-agent`.
 */
export function otherPrograms(): Originals {
  return { principal: process.env.PRINCIPAL_CMD || undefined, agent: process.env.AGENT_CMD || undefined };
}

/** Which version agents name at another implementation's principal: its own, which argocd-agent's insists on. */
export function versionForOther(): string | undefined {
  const { principal } = otherPrograms();
  if (principal === undefined) {
    return undefined;
  }
  const said = execFileSync(principal, ['version'], { encoding: 'utf8', timeout: 30_000 }).trim();
  return said.replace(/^argocd-agent-/, '');
}
