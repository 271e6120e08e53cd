import type { Application } from './application.ts';
import { matchesAny } from './glob.ts';
import { annotations, skipSyncLabel } from './names.ts';
import type { Metadata } from './object.ts';
import { inCluster } from './project-clusters.ts';

/** How hub Applications are given to agents. */
export interface RoutingOptions {
  /** The principal's own namespace. */
  readonly namespace: string;
  /** Globs, or regular expressions between slashes. With namespace-based mapping an empty list admits nothing. */
  readonly allowedNamespaces: readonly string[];
  /**
   * `namespace`: an Application belongs to the agent named like its namespace; `destination`: to `spec.destination.name`, or, without a
   * name, to the agent of the cluster with the URL in `spec.destination.server`.
   */
  readonly mapping: 'namespace' | 'destination';
  /**
   * The agent whose cluster Secret is the only one with this URL; empty when that Secret names no agent; undefined when no Secret has
   * the URL, or several have it. Default: no Secret has any.
   */
  readonly agentOfUrl?: (url: string) => string | undefined;
  /** A label selector beyond the skip-sync label, already parsed into a test. */
  readonly selects?: (labels: Readonly<Record<string, string>>) => boolean;
}

/** Whether an object is kept out of synchronisation by its label; only the exact value `true` counts. */
export function isSkipped(object: { readonly metadata: Metadata }): boolean {
  return object.metadata.labels?.[skipSyncLabel] === 'true';
}

/** An Application, as far as it says where it goes. */
interface Placed {
  readonly spec?: { readonly destination?: { readonly name?: string; readonly server?: string } };
}

/**
 * The URL that decides which cluster an Application is for, with destination-based mapping: its destination has no name, and is not
 * the hub. Argo CD compares it as it is with the URLs of cluster Secrets ({@link clusterUrl}).
 */
export function routingUrl({ spec }: Placed): string | undefined {
  const { name = '', server = '' } = spec?.destination ?? {};
  return name !== '' || server === '' || server === inCluster.server ? undefined : server;
}

/** The URL in a cluster Secret as Argo CD reads it: without slashes at its end. */
export function clusterUrl(server: string): string {
  return server.replace(/\/+$/, '');
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
    if (name !== '') {
      return name === 'in-cluster' ? undefined : name;
    }
    const url = routingUrl(application);
    return url === undefined ? undefined : options.agentOfUrl?.(url) || undefined;
  };
}

/**
 * A function that tells whether nobody knows which cluster a hub Application is for: no cluster Secret has the URL in its
 * destination, or several have. Not its user has decided that, so the cluster that has it keeps it.
 */
export function undecidedApplications(options: RoutingOptions): (application: Application) => boolean {
  const isAdmitted = applicationAdmission(options);
  return (application) => {
    const url = options.mapping === 'destination' ? routingUrl(application) : undefined;
    return (
      url !== undefined &&
      options.agentOfUrl?.(url) === undefined &&
      application.metadata.annotations?.[annotations.lastUpdated] === undefined &&
      isAdmitted(application)
    );
  };
}

/**
 * A router for destination-based mapping that gives no mirror to an agent, also when users took away what tells that it is one.
 * Whether an object is a mirror stays what it was at first, although what is known of mirrors changes.
 * @param isMirror knows mirrors that do not say so
 */
export function withoutMirrors(
  router: (application: Application) => string | undefined,
  isMirror: (application: Application) => boolean,
): (application: Application) => string | undefined {
  const answers = new WeakMap<Application, boolean>();
  return (application) => {
    let answer = answers.get(application);
    if (answer === undefined) {
      answer = isMirror(application);
      answers.set(application, answer);
    }
    return answer ? undefined : router(application);
  };
}
