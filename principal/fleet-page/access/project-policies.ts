import type { AppProject } from '../../../lib/argocd/index.ts';

/** The policies of the roles of an AppProject. */
export interface ProjectPolicies {
  readonly name: string;
  /** As Argo CD adds them to its own; undefined when they are longer than {@link longestProjectPolicies}. */
  readonly policies: string | undefined;
}

/** In characters. Whoever may write an AppProject writes its policies, and all who look at what is in it wait for them. */
export const longestProjectPolicies = 64 * 1024;

/** The policies of a project's roles. They are not made any longer than they may be. */
export function projectPolicies(project: AppProject): ProjectPolicies {
  const { name } = project.metadata;
  const lines: string[] = [];
  let length = 0;
  for (const line of linesOf(project)) {
    length += line.length + 1;
    if (length > longestProjectPolicies) {
      return { name, policies: undefined };
    }
    lines.push(line);
  }
  return { name, policies: lines.join('\n') };
}

/** The lines of all roles, and the roles of groups. */
function* linesOf({ metadata, spec }: AppProject): Iterable<string> {
  const roles = (Array.isArray(spec.roles) ? spec.roles : []) as {
    name?: unknown;
    policies?: unknown;
    groups?: unknown;
  }[];
  for (const role of roles) {
    yield* texts(role?.policies);
    for (const group of texts(role?.groups)) {
      yield `g, ${group}, proj:${metadata.name}:${String(role?.name)}`;
    }
  }
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
