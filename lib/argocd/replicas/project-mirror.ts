import type { AppProject } from '../application.ts';
import { annotations } from '../names.ts';

/** Longest name of a Kubernetes object. */
export const longestName = 253;

/** What the hub calls an autonomous agent's project. Two agents may yield the same name, so it proves nothing. */
export function projectMirrorName(agent: string, project: string): string {
  return `${agent}-${project}`;
}

/** The agent's name of what the hub calls so; a name without the agent's prefix is taken for its own. */
export function mirroredProjectName(agent: string, name: string): string {
  const prefix = `${agent}-`;
  return name.length > prefix.length && name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/**
 * An autonomous agent's project as the hub has it, as argocd-agent's principal makes it: for Applications in the
 * agent's namespace, deployed to the agent's cluster, and with its roles speaking of the mirror.
 */
export function projectForHub(project: AppProject, agent: string): AppProject {
  const { destinations, roles, ...spec } = project.spec;
  return {
    ...project,
    spec: {
      ...spec,
      sourceNamespaces: [agent],
      ...(destinations === undefined
        ? {}
        : { destinations: destinations.map((destination) => ({ ...destination, name: agent, server: '*' })) }),
      ...(roles === undefined ? {} : { roles: roles.map((role) => roleForHub(role, project.metadata.name, agent)) }),
    },
  };
}

/**
 * Which autonomous agent's mirror a project of the hub is; undefined for the hub's own. Mirrors that argocd-agent's
 * principal made bear no name of an agent, but only they have a source UID, one source namespace and its name as a prefix.
 */
export function ownerOfMirror({ metadata, spec }: AppProject): string | undefined {
  const { [annotations.sourceUid]: source, [annotations.mirrorOf]: owner } = metadata.annotations ?? {};
  if (owner !== undefined) {
    return owner;
  }
  const [agent, ...others] = spec.sourceNamespaces ?? [];
  return source && agent && others.length === 0 && metadata.name.startsWith(`${agent}-`) ? agent : undefined;
}

function roleForHub(role: unknown, project: string, agent: string): unknown {
  if (role === null || typeof role !== 'object' || !('policies' in role) || !Array.isArray(role.policies)) {
    return role;
  }
  const name = 'name' in role ? role.name : undefined;
  const policies = role.policies.map((line: unknown) =>
    typeof line === 'string' ? policyForHub(line, project, name, agent) : line,
  );
  return { ...role, policies };
}

const translated: ReadonlySet<string | undefined> = new Set(['applications', 'applicationsets', 'logs', 'exec']);

/**
 * A line of a role's policy, `p, proj:<project>:<role>, <resource>, <action>, <project>/<application>, <effect>`, for the
 * mirror: there Applications are called `<project>/<namespace>/<application>`. What is not of this form stays as it is, and
 * so does a line about another project or role, which grants nothing on either side.
 */
function policyForHub(line: string, project: string, role: unknown, agent: string): string {
  const fields = line.split(',');
  const [kind, subject = '', resource, , object = ''] = fields;
  if (fields.length !== 6 || kind?.trim() !== 'p' || !translated.has(resource?.trim())) {
    return line;
  }
  const mirror = projectMirrorName(agent, project);
  const [prefix, of, ...rest] = subject.trim().split(':');
  if (prefix !== 'proj' || of === undefined) {
    return line;
  }
  if (rest.length > 0) {
    if (of !== project || rest.join(':') !== role) {
      return line;
    }
    fields[1] = subject.replace(subject.trim(), () => `proj:${mirror}:${rest.join(':')}`);
  }
  const [first, application, ...more] = object.trim().split('/');
  if (application !== undefined && more.length === 0) {
    if (first !== project) {
      return line;
    }
    fields[4] = ` ${mirror}/${agent}/${application}`;
  }
  return fields.join(',');
}
