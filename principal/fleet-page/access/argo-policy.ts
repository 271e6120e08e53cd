import { type PatternVerdict, type PolicyPattern, policyPattern } from './policy-match.ts';
import { type PolicyLine, parsePolicy } from './policy-text.ts';

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
  readonly subject: string;
  readonly resource: PolicyPattern;
  readonly action: PolicyPattern;
  readonly object: PolicyPattern;
  readonly effect: string;
  /** The object as it is written. */
  readonly written: string;
}

/** The rights and memberships of one text. */
class PolicyPart {
  readonly rights: readonly Right[];
  readonly roles = new Map<string, string[]>();

  constructor(lines: readonly PolicyLine[], mode: 'glob' | 'regex') {
    const compile = (source: string) => policyPattern(source, mode);
    this.rights = lines.flatMap((line) =>
      line.kind === 'right'
        ? [
            {
              subject: line.subject,
              resource: compile(line.resource),
              action: compile(line.action),
              object: compile(line.object),
              effect: line.effect,
              written: line.object,
            },
          ]
        : [],
    );
    for (const line of lines) {
      if (line.kind === 'member') {
        this.roles.set(line.subject, [...(this.roles.get(line.subject) ?? []), line.role]);
      }
    }
  }
}

/**
 * Argo CD's RBAC, as far as reading needs it: rights (`p`) and roles (`g`) of `argocd-rbac-cm`, `policy.default`, the built-in
 * roles, and the roles of a project for objects in it. A right counts when one line allows it and none denies it. A line that
 * denies and that is not understood denies; one that allows and is not understood allows nothing, and with regular expressions
 * it denies, since Argo CD gives up at it. Its built-in roles have globs, which are no regular expressions: then they give nothing.
 *
 * The rules are those of argo-cd `util/rbac` and `server/rbacpolicy`.
 */
export class ArgoPolicy {
  readonly #parts: readonly PolicyPart[];
  readonly #defaultRole: string;
  readonly #mode: 'glob' | 'regex';
  readonly #projects = new Map<string, { readonly text: string; readonly part: PolicyPart | undefined }>();

  /**
   * @param data the data of ConfigMap `argocd-rbac-cm`: `policy.csv`, further `policy.*.csv`, `policy.default`, `policy.matchMode`
   * @throws Error that names the line that is not understood
   */
  constructor(data: Readonly<Record<string, string>>) {
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
    this.#parts = [new PolicyPart(builtIn, this.#mode), new PolicyPart(lines, this.#mode)];
  }

  /**
   * Whether the subject may do it.
   * @param project name and text of the policies of the project that the object is in
   */
  allows(subject: PolicySubject, request: PolicyRequest, project?: { name: string; policies: string }): boolean {
    const parts = project === undefined ? this.#parts : [...this.#parts, ...this.#ofProject(project)];
    // As Argo CD has it: what the default role allows needs nothing else, and only groups that are in a `g` line count.
    const known = subject.groups.filter((group) => parts.some(({ roles }) => roles.has(group)));
    return [this.#defaultRole, subject.name, ...known].some(
      (name) => name !== '' && this.#allowed(parts, name, request),
    );
  }

  /** Whether the subject may get all clusters, whatever they are called. */
  allowsAllClusters(subject: PolicySubject): boolean {
    const request: PolicyRequest = { resource: 'clusters', action: 'get', object: '' };
    const known = subject.groups.filter((group) => this.#parts.some(({ roles }) => roles.has(group)));
    return [this.#defaultRole, subject.name, ...known].some((name) => {
      if (name === '') {
        return false;
      }
      const concerned = rightsOf(this.#parts, name).filter(
        (each) => each.resource(request.resource) !== false && each.action(request.action) !== false,
      );
      const isAllowed = concerned.some(
        (each) =>
          each.effect === 'allow' &&
          each.resource(request.resource) === true &&
          each.action(request.action) === true &&
          each.written === '*' &&
          each.object('') === true,
      );
      return isAllowed && concerned.every(({ effect }) => effect !== 'deny');
    });
  }

  /**
   * Whether the roles of a project may take away from somebody what Argo CD's policy gives. With regular expressions every
   * line may: Argo CD gives up at one that it does not understand.
   */
  mayDeny(project: { name: string; policies: string }): boolean {
    return this.#ofProject(project).some(
      ({ rights }) => rights.length > 0 && (this.#mode === 'regex' || rights.some(({ effect }) => effect === 'deny')),
    );
  }

  #allowed(parts: readonly PolicyPart[], subject: string, request: PolicyRequest): boolean {
    let isAllowed = false;
    for (const each of rightsOf(parts, subject)) {
      const isRegex = this.#mode === 'regex';
      const verdict = isRegex ? firstVerdict(each, request) : verdictOf(each, request);
      if ((isRegex && verdict === 'unknown') || (each.effect === 'deny' && verdict !== false)) {
        return false;
      }
      isAllowed ||= each.effect === 'allow' && verdict === true;
    }
    return isAllowed;
  }

  /** A project whose policies are not understood gives no rights, as in Argo CD. */
  #ofProject({ name, policies }: { name: string; policies: string }): readonly PolicyPart[] {
    const known = this.#projects.get(name);
    if (known?.text === policies) {
      return known.part === undefined ? [] : [known.part];
    }
    let part: PolicyPart | undefined;
    try {
      part = new PolicyPart(parsePolicy(policies), this.#mode);
    } catch {
      part = undefined;
    }
    this.#projects.set(name, { text: policies, part });
    return part === undefined ? [] : [part];
  }
}

function verdictOf(each: Right, request: PolicyRequest): PatternVerdict {
  const verdicts = [each.resource(request.resource), each.action(request.action), each.object(request.object)];
  return verdicts.includes(false) ? false : verdicts.includes('unknown') ? 'unknown' : true;
}

/** Argo CD compares field after field, and gives up at the first that it does not understand. */
function firstVerdict(each: Right, request: PolicyRequest): PatternVerdict {
  for (const field of ['resource', 'action', 'object'] as const) {
    const verdict = each[field](request[field]);
    if (verdict !== true) {
      return verdict;
    }
  }
  return true;
}

/** The rights of a subject and of all its roles. */
function rightsOf(parts: readonly PolicyPart[], subject: string): Right[] {
  const names = new Set([subject]);
  let latest = [subject];
  for (let depth = 0; depth < deepest && latest.length > 0; depth++) {
    latest = latest
      .flatMap((name) => parts.flatMap(({ roles }) => roles.get(name) ?? []))
      .filter((role) => !names.has(role));
    for (const role of latest) {
      names.add(role);
    }
  }
  return parts.flatMap(({ rights }) => rights.filter((each) => names.has(each.subject)));
}
