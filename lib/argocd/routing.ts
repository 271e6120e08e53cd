import type { Application } from './application.ts';
import { matchesAny } from './glob.ts';
import { annotations, skipSyncLabel } from './names.ts';
import type { Metadata } from './object.ts';

/** How hub Applications are given to agents. */
export interface RoutingOptions {
  /** The principal's own namespace. */
  readonly namespace: string;
  /** Globs, or regular expressions between slashes. With namespace-based mapping an empty list admits nothing. */
  readonly allowedNamespaces: readonly string[];
  /** `namespace`: an Application belongs to the agent named like its namespace; `destination`: to `spec.destination.name`. */
  readonly mapping: 'namespace' | 'destination';
  /** A label selector beyond the skip-sync label, already parsed into a test. */
  readonly selects?: (labels: Readonly<Record<string, string>>) => boolean;
}

/** Whether an object is kept out of synchronisation by its label; only the exact value `true` counts. */
export function isSkipped(object: { readonly metadata: Metadata }): boolean {
  return object.metadata.labels?.[skipSyncLabel] === 'true';
}

/** A function that tells whether a hub Application takes part in synchronisation: the admission filter of argocd-agent's principal. */
export function applicationAdmission({
  mapping,
  namespace: own,
  allowedNamespaces,
  selects = () => true,
}: RoutingOptions): (application: Application) => boolean {
  const allowed = mapping === 'destination' ? [own, ...allowedNamespaces] : allowedNamespaces;
  const known = new Map<string, boolean>();
  const isAllowed = (namespace: string): boolean => {
    let answer = known.get(namespace);
    if (answer === undefined) {
      answer = matchesAny(allowed, namespace);
      if (known.size > 10_000) {
        known.clear();
      }
      known.set(namespace, answer);
    }
    return answer;
  };
  return (application) =>
    isAllowed(application.metadata.namespace ?? '') &&
    !isSkipped(application) &&
    selects(application.metadata.labels ?? {});
}

/**
 * A function that tells which agent has a hub Application, or undefined when none has it: the admission filter and the
 * mapping of argocd-agent's principal in one.
 */
export function applicationRouter(options: RoutingOptions): (application: Application) => string | undefined {
  const isAdmitted = applicationAdmission(options);
  return (application) => {
    if (!isAdmitted(application)) {
      return undefined;
    }
    if (options.mapping === 'namespace') {
      return application.metadata.namespace ?? '';
    }
    if (application.metadata.annotations?.[annotations.lastUpdated] !== undefined) {
      // The mirror of an autonomous agent's, whose cluster may be called like another agent: only principals write this.
      return undefined;
    }
    const name = application.spec.destination?.name ?? '';
    return name === '' || name === 'in-cluster' ? undefined : name;
  };
}

/**
 * A router for destination-based mapping that gives no mirror to an agent, also when users took away what tells that it is one.
 * The answer for an object stays what it was at first, although what is known of mirrors changes.
 * @param isMirror knows mirrors that do not say so
 */
export function withoutMirrors(
  router: (application: Application) => string | undefined,
  isMirror: (application: Application) => boolean,
): (application: Application) => string | undefined {
  const answers = new WeakMap<Application, string>();
  return (application) => {
    let agent = answers.get(application);
    if (agent === undefined) {
      agent = isMirror(application) ? '' : (router(application) ?? '');
      answers.set(application, agent);
    }
    return agent === '' ? undefined : agent;
  };
}
