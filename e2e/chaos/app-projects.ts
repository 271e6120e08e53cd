import { isDeepStrictEqual } from 'node:util';
import type { ArgoObject } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import type { WantedApplication } from './ledger.ts';

/** The AppProject of the hub that some of a managed agent's Applications are in. */
export const teamProject = (agent: string): string => `team-${agent}`;

/** It as everything is permitted that its agent's cluster is for. */
export function openProject(agent: string): ArgoObject['spec'] {
  return {
    sourceRepos: ['*'],
    destinations: [{ name: agent, namespace: '*', server: '*' }],
    sourceNamespaces: ['*'],
  };
}

/** Locks an open AppProject down: no source is permitted, or no destination. Opens a locked one. */
export function turnedProject({ agent, spec }: WantedApplication, random: Random): ArgoObject['spec'] {
  const open = openProject(agent);
  return isDeepStrictEqual(spec, open)
    ? { ...open, ...random.pick([{ sourceRepos: [] }, { destinations: [] }]) }
    : open;
}

/**
 * What is wrong with the copy of such an AppProject on its agent's cluster, in words. One that names no destination goes to no
 * cluster.
 */
export function projectProblem({ name, spec }: WantedApplication, copy: ArgoObject | undefined): string | undefined {
  const isDue = (spec.destinations as readonly unknown[]).length > 0;
  if (isDue !== (copy !== undefined)) {
    return `AppProject ${name} is ${copy === undefined ? 'not ' : ''}there`;
  }
  const [wanted, found] = [spec.sourceRepos, copy?.spec.sourceRepos ?? []];
  return copy === undefined || isDeepStrictEqual(wanted, found)
    ? undefined
    : `AppProject ${name} permits the sources ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`;
}
