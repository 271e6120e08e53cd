import type { AppProject } from '../application.ts';
import { projectMirrorName } from './project-mirror.ts';

/**
 * The mirror that argocd-agent's principal makes of an autonomous agent's project. Programs compare checksums and digests of
 * it, because the agent can make it without knowing the hub. This hub has {@link projectForHub} instead.
 */
export function referenceMirror(project: AppProject, agent: string): AppProject {
  const { destinations, roles, ...spec } = project.spec;
  return {
    ...project,
    spec: {
      ...spec,
      sourceNamespaces: [agent],
      ...(destinations === undefined
        ? {}
        : { destinations: destinations.map((destination) => ({ ...destination, name: agent, server: '*' })) }),
      ...(roles === undefined ? {} : { roles: roles.map((role) => roleOf(role, project.metadata.name, agent)) }),
    },
  };
}

function roleOf(role: unknown, project: string, agent: string): unknown {
  if (role === null || typeof role !== 'object' || !('policies' in role) || !Array.isArray(role.policies)) {
    return role;
  }
  const name = 'name' in role ? role.name : undefined;
  const policies = role.policies.map((line: unknown) =>
    typeof line === 'string' ? policyOf(line, project, name, agent) : line,
  );
  return { ...role, policies };
}

const translated: ReadonlySet<string | undefined> = new Set(['applications', 'applicationsets', 'logs', 'exec']);

/**
 * A line of a role's policy, `p, proj:<project>:<role>, <resource>, <action>, <project>/<application>, <effect>`, for the
 * mirror: there Applications are called `<project>/<namespace>/<application>`. What is not of this form stays as it is, and
 * so does a line about another project or role.
 */
function policyOf(line: string, project: string, role: unknown, agent: string): string {
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
