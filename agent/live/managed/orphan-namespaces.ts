import { inCluster } from '../../../lib/argocd/index.ts';
import type { Informer, KubeObject } from '../../../lib/kube/index.ts';

/** How long the answer about all namespaces is used: lists ask for each of their objects. */
const rememberedMs = 1_000;

/**
 * Tells in which namespaces Argo CD looks for orphaned resources: those that an Application of this cluster deploys into whose AppProject
 * has `orphanedResources`. It shows what belongs to no Application there in the Application's resource tree.
 * @param sources the caches of this cluster, and Argo CD's namespace
 */
export function orphanNamespaces(sources: {
  readonly applications: Pick<Informer<KubeObject>, 'list'>;
  readonly appProjects: Pick<Informer<KubeObject>, 'get'>;
  readonly namespace: string;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}): (namespace: string) => boolean {
  const { applications, appProjects, namespace: own, now = () => performance.now() } = sources;
  let known: ReadonlySet<string> = new Set();
  let until = Number.NEGATIVE_INFINITY;
  const looksForOrphans = (name: string) =>
    Boolean((appProjects.get({ namespace: own, name }) as ProjectObject | undefined)?.spec?.orphanedResources);
  return (namespace) => {
    if (now() >= until) {
      known = new Set(
        (applications.list() as ApplicationObject[])
          .filter(({ spec }) => looksForOrphans(spec?.project || 'default'))
          .filter(({ spec }) => isHere(spec?.destination))
          .flatMap(({ spec }) => spec?.destination?.namespace || []),
      );
      until = now() + rememberedMs;
    }
    return known.has(namespace);
  };
}

/** One that deploys elsewhere says nothing about the namespace of that name here. */
function isHere({ name, server }: Destination = {}): boolean {
  return name ? name === inCluster.name : server === inCluster.server;
}

interface Destination {
  name?: string;
  server?: string;
  namespace?: string;
}

interface ProjectObject extends KubeObject {
  spec?: { orphanedResources?: unknown };
}

interface ApplicationObject extends KubeObject {
  spec?: { project?: string; destination?: Destination };
}
