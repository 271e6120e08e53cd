import { BoundedMap } from '../../../lib/base/index.ts';
import {
  costOfExpression,
  type PatternVerdict,
  type PolicyPattern,
  policyPattern,
  type StepBudget,
} from './policy-match.ts';
import { type PolicyLine, parsePolicy } from './policy-text.ts';
import { longestProjectPolicies, type ProjectPolicies } from './project-policies.ts';

/** Whom Argo CD's policy is asked about. */
export interface PolicySubject {
  readonly name: string;
  /** Groups of an identity provider; a local account has none. */
  readonly groups: readonly string[];
}

/** A resource and an object, as Argo CD's policies name them: `clusters` by server, `applications` by project and name. */
export interface PolicyRequest {
  readonly resource: 'clusters' | 'applications';
  readonly action: 'get';
  readonly object: string;
}

/** The part of Argo CD's built-in policy (`role:readonly`, `role:admin` and who has it) that such requests need. */
const builtIn: readonly PolicyLine[] = [
  right('role:readonly', 'applications', '*/*'),
  right('role:readonly', 'clusters', '*'),
  { kind: 'member', subject: 'role:admin', role: 'role:readonly' },
  { kind: 'member', subject: 'admin', role: 'role:admin' },
];

function right(subject: string, resource: string, object: string): PolicyLine {
  return { kind: 'right', subject, resource, action: 'get', object, effect: 'allow' };
}

/** Roles of roles are followed this far, as in Argo CD. */
const deepest = 10;

interface Right {
  readonly resource: PolicyPattern;
  readonly action: PolicyPattern;
  readonly object: PolicyPattern;
  readonly effect: string;
  /** The object as it is written. */
  readonly written: string;
  /** Whether a project gives it. */
  readonly isProjects: boolean;
}

/** The rights and memberships of one text, by subject. */
class PolicyPart {
  readonly rights = new Map<string, Right[]>();
  readonly roles = new Map<string, Set<string>>();

  constructor(lines: readonly PolicyLine[], mode: 'glob' | 'regex', isProjects = false) {
    const patterns = new Map<string, PolicyPattern>();
    const compile = (source: string) => {
      const pattern = patterns.get(source) ?? policyPattern(source, mode);
      patterns.set(source, pattern);
      return pattern;
    };
    for (const line of lines) {
      const { subject } = line;
      if (line.kind === 'member') {
        this.roles.set(subject, (this.roles.get(subject) ?? new Set()).add(line.role));
        continue;
      }
      const rights = this.rights.get(subject) ?? [];
      this.rights.set(subject, rights);
      rights.push({
        resource: compile(line.resource),
        action: compile(line.action),
        object: compile(line.object),
        effect: line.effect,
        written: line.object,
        isProjects,
      });
    }
  }
}

/** Names whose rights are remembered, in each project. */
const mostNames = 100;

/** Texts that count together: Argo CD's own and that of a project. */
class PolicyScope {
  readonly parts: readonly PolicyPart[];
  readonly #known = new BoundedMap<string, readonly Right[]>(mostNames);

  constructor(parts: readonly PolicyPart[]) {
    this.parts = parts;
  }

  /** As Argo CD has it: what the default role allows needs nothing else, and only groups that are in a `g` line count. */
  names(subject: PolicySubject, defaultRole: string): string[] {
    const known = subject.groups.filter((group) => this.parts.some(({ roles }) => roles.has(group)));
    return [defaultRole, subject.name, ...known].filter((name) => name !== '');
  }

  /** The rights of a subject and of all its roles. */
  rightsOf(name: string): readonly Right[] {
    const known = this.#known.get(name);
    if (known !== undefined) {
      return known;
    }
    const names = [...this.#rolesOf(name)];
    const rights = this.parts.flatMap((part) => names.flatMap((each) => part.rights.get(each) ?? []));
    this.#known.set(name, rights);
    return rights;
  }

  #rolesOf(name: string): Set<string> {
    const names = new Set([name]);
    let latest = new Set(names);
    for (let depth = 0; depth < deepest && latest.size > 0; depth++) {
      const next = new Set<string>();
      for (const each of latest) {
        for (const role of this.parts.flatMap(({ roles }) => [...(roles.get(each) ?? [])])) {
          if (!names.has(role)) {
            names.add(role);
            next.add(role);
          }
        }
      }
      latest = next;
    }
    return names;
  }
}

/** What may be done for one question by the lines of a project, which a tenant may have written. */
const mostSteps = 50_000;
/** What all expressions of a project may cost to compile. See {@link costOfExpression}. */
const mostExpressions = 64 * 1024;

/**
 * Argo CD's RBAC, as far as reading needs it: rights (`p`) and roles (`g`) of `argocd-rbac-cm`, `policy.default`, the built-in
 * roles, and the roles of a project for objects in it. A right counts when one line allows it and none denies it. A line that
 * denies and that is not understood denies; one that allows and is not understood allows nothing, and with regular expressions
 * it denies, since Argo CD gives up at it. Its built-in roles have globs, which are no regular expressions: then they give nothing.
 *
 * The rules are those of argo-cd `util/rbac` and `server/rbacpolicy`.
 */
export class ArgoPolicy {
  readonly #own: PolicyScope;
  readonly #tooMuch: (project: string) => void;
  readonly #defaultRole: string;
  readonly #mode: 'glob' | 'regex';
  readonly #projects = new WeakMap<ProjectPolicies, PolicyScope | 'too much'>();

  /**
   * @param data the data of ConfigMap `argocd-rbac-cm`: `policy.csv`, further `policy.*.csv`, `policy.default`, `policy.matchMode`
   * @param tooMuch hears of each project, when it is asked about, whose policies are more than those of one project may be: they
   *   give nothing and deny everything
   * @throws Error that names the line that is not understood
   */
  constructor(data: Readonly<Record<string, string>>, tooMuch: (project: string) => void = () => undefined) {
    this.#tooMuch = tooMuch;
    this.#mode = data['policy.matchMode'] === 'regex' ? 'regex' : 'glob';
    this.#defaultRole = data['policy.default'] ?? '';
    const more = Object.keys(data)
      .filter((key) => /^policy\..*\.csv$/.test(key))
      .sort();
    const lines = ['policy.csv', ...more].flatMap((key) => {
      try {
        return parsePolicy(data[key] ?? '');
      } catch (error) {
        throw new Error(`${key}: ${(error as Error).message}`, { cause: error });
      }
    });
    this.#own = new PolicyScope([new PolicyPart(builtIn, this.#mode), new PolicyPart(lines, this.#mode)]);
  }

  /**
   * Whether the subject may do it.
   * @param project the policies of the project that the object is in
   */
  allows(subject: PolicySubject, request: PolicyRequest, project?: ProjectPolicies): boolean {
    const scope = this.#scopeOf(project);
    if (scope === 'too much') {
      return false;
    }
    const steps = { left: mostSteps };
    return scope.names(subject, this.#defaultRole).some((name) => this.#allowed(scope.rightsOf(name), request, steps));
  }

  /**
   * Whether the subject may get all clusters, whatever they are called.
   * @param project the policies of the project that they are in. Default: they are in none
   */
  allowsAllClusters(subject: PolicySubject, project?: ProjectPolicies): boolean {
    const scope = this.#scopeOf(project);
    return (
      scope !== 'too much' &&
      scope.names(subject, this.#defaultRole).some((name) => allowsEveryCluster(scope.rightsOf(name)))
    );
  }

  #allowed(rights: readonly Right[], request: PolicyRequest, steps: StepBudget): boolean {
    let isAllowed = false;
    for (const each of rights) {
      const isRegex = this.#mode === 'regex';
      const verdict = verdictOf(each, request, each.isProjects ? steps : endless, isRegex);
      if ((isRegex && verdict === 'unknown') || (each.effect === 'deny' && verdict !== false)) {
        return false;
      }
      isAllowed ||= each.effect === 'allow' && verdict === true;
    }
    return isAllowed;
  }

  #scopeOf(project: ProjectPolicies | undefined): PolicyScope | 'too much' {
    if (project === undefined) {
      return this.#own;
    }
    const known = this.#projects.get(project);
    if (known !== undefined) {
      return known;
    }
    const scope = this.#read(project);
    this.#projects.set(project, scope);
    if (scope === 'too much') {
      this.#tooMuch(project.name);
    }
    return scope;
  }

  /** A project whose policies are not understood gives no rights, as in Argo CD. */
  #read({ policies }: ProjectPolicies): PolicyScope | 'too much' {
    if (policies === undefined || policies.length > longestProjectPolicies) {
      return 'too much';
    }
    let lines: PolicyLine[];
    try {
      lines = parsePolicy(policies);
    } catch {
      return this.#own;
    }
    return this.#mode === 'regex' && costOf(lines) > mostExpressions
      ? 'too much'
      : new PolicyScope([...this.#own.parts, new PolicyPart(lines, this.#mode, true)]);
  }
}

function allowsEveryCluster(rights: readonly Right[]): boolean {
  const steps = { left: mostSteps };
  const request: PolicyRequest = { resource: 'clusters', action: 'get', object: '' };
  const fields = (each: Right) => {
    const left = each.isProjects ? steps : endless;
    return [each.resource(request.resource, left), each.action(request.action, left)];
  };
  const concerned = rights.flatMap((each) => {
    const verdicts = fields(each);
    return verdicts.includes(false) ? [] : [{ ...each, isKnown: !verdicts.includes('unknown') }];
  });
  return (
    concerned.every(({ effect }) => effect !== 'deny') &&
    concerned.some(
      ({ isKnown, effect, written, object }) =>
        isKnown && effect === 'allow' && written === '*' && object('', endless) === true,
    )
  );
}

/** For Argo CD's own policy. Nothing that is taken from it makes it less. */
const endless: StepBudget = { left: Number.POSITIVE_INFINITY };

/**
 * With regular expressions Argo CD compares field after field and gives up at the first that it does not understand; a field that
 * differs ends it before.
 */
function verdictOf(each: Right, request: PolicyRequest, steps: StepBudget, isRegex: boolean): PatternVerdict {
  let found: PatternVerdict = true;
  for (const field of ['resource', 'action', 'object'] as const) {
    const verdict = each[field](request[field], steps);
    if (verdict === false || (isRegex && verdict === 'unknown')) {
      return verdict;
    }
    found = verdict === 'unknown' ? verdict : found;
  }
  return found;
}

/** What it takes to compile the expressions of some lines, each once. */
function costOf(lines: readonly PolicyLine[]): number {
  const rights = lines.filter((line) => line.kind === 'right');
  const expressions = new Set(rights.flatMap(({ resource, action, object }) => [resource, action, object]));
  return [...expressions].reduce((sum, each) => sum + costOfExpression(each), 0);
}
