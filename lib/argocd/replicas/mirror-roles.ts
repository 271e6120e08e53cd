/** A role of an AppProject. Tokens are left out: they are valid only for the Argo CD that issued them. */
export interface ProjectRole {
  readonly name: string;
  readonly description?: string;
  readonly policies?: readonly string[];
  readonly groups?: readonly string[];
}

/** What the roles of a mirror are built of, and for. */
export interface MirrorRoles {
  /** The project that the policies name now. */
  readonly project: string;
  /** What stands now before the name of an Application in the policies. */
  readonly applications: string;
  /** The mirror's name. */
  readonly mirror: string;
  readonly agent: string;
  /** Whether groups of users keep the roles on the hub. */
  readonly keepsGroups: boolean;
}

/**
 * The roles of a mirror. Argo CD adds their text to its RBAC policy without a check (`ProjectPoliciesString`), so each line
 * is built of parts: `p, proj:<mirror>:<role>, <resource>, <action>, <mirror>/<agent>/<application>, <effect>`. It grants
 * actions on Applications in the agent's namespace, on their logs and on terminals in their pods, and nothing else. What is
 * not of the form that Argo CD's API server accepts is left out, and so is a role with another name than it accepts.
 */
export function rolesForHub(roles: readonly ProjectRole[], terms: MirrorRoles): ProjectRole[] {
  return roles
    .filter(({ name }) => /^[a-zA-Z0-9]([-_a-zA-Z0-9]*[a-zA-Z0-9])?$/.test(name))
    .map(({ name, description, policies = [], groups = [] }) => ({
      name,
      ...(description === undefined ? {} : { description }),
      policies: policiesForHub(policies, name, terms),
      ...(terms.keepsGroups ? { groups: [...new Set(groups.map((group) => group.trim()))].filter(isGroup) } : {}),
    }));
}

/** The resources of a mirror's policies, with the actions that Argo CD knows on each. */
const actions: ReadonlyMap<string, RegExp> = new Map([
  ['applications', /^(\*|get|create|update|delete|sync|override|rollback|(action|update|delete)\/[-\w.*/]+)$/],
  ['logs', /^(\*|get)$/],
  ['exec', /^(\*|create)$/],
]);

function policiesForHub(policies: readonly string[], role: string, terms: MirrorRoles): string[] {
  const lines = new Set<string>();
  for (const policy of policies) {
    const [kind, subject, resource = '', action = '', object = '', effect = '', ...more] = policy
      .split(',')
      .map((field) => field.trim());
    if (kind !== 'p' || subject !== `proj:${terms.project}:${role}` || more.length > 0) {
      continue;
    }
    const application = object.startsWith(`${terms.applications}/`) ? object.slice(terms.applications.length + 1) : '';
    const isKnown =
      actions.get(resource)?.test(action) === true && /^[-\w.*]+$/.test(application) && /^(allow|deny)$/.test(effect);
    if (isKnown) {
      lines.add(
        `p, proj:${terms.mirror}:${role}, ${resource}, ${action}, ${terms.mirror}/${terms.agent}/${application}, ${effect}`,
      );
    } else if (effect !== 'allow' && !isAboutOthers(resource, application)) {
      // Without this line the role could do more on the hub than on the cluster.
      return [];
    }
  }
  return [...lines];
}

/** Whether a line never acts on what a mirror shows: another kind of object, or an Application of another namespace. */
function isAboutOthers(resource: string, application: string): boolean {
  return (/^[a-z]+$/.test(resource) && !actions.has(resource)) || /^[-\w.*]+\/[-\w.*]+$/.test(application);
}

/** As Argo CD's API server checks groups: one with a comma is in quotes, and nothing in it ends the line or the field. */
function isGroup(group: string): boolean {
  const [, quoted] = /^"(.*)"$/s.exec(group) ?? [];
  return group !== '' && (quoted === undefined ? /^[^",\p{Cc}]+$/u : /^[^"\p{Cc}]+$/u).test(quoted ?? group);
}
