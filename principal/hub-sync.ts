import {
  type Application,
  ApplicationMirrors,
  type AppProject,
  applicationRouter,
  type GpgKeys,
  HubApplications,
  HubSync,
  type Mapping,
  type MirrorFailure,
  ProjectMirrors,
  publishAppProjects,
  publishGpgKeys,
  publishRepositories,
  type RepositorySecret,
  sameNamespaces,
  withoutMirrors,
} from '../lib/argocd/index.ts';
import { type Logger, labelSelector } from '../lib/base/index.ts';
import { argoApplications, argoAppProjects, detailedStores } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, secrets } from '../lib/kube/index.ts';
import type { Detail } from '../lib/ops/index.ts';
import { processRuntime } from '../lib/sync/index.ts';
import type { PrincipalCaches } from './caches.ts';
import type { PrincipalFlags } from './flags.ts';
import { hubNamespaceCreator, type NamespaceCreation, principalFieldManager } from './namespaces.ts';

/** The synchronisation, and what others need of its parts. */
export interface HubSynchronisation {
  readonly sync: HubSync;
  /** Call it when the name of an agent's cluster in the hub's Argo CD may have changed. */
  clusterChanged(agent: string): void;
  /** The managed agent that has a hub Application; undefined when none has it. */
  agentOf(application: Application): string | undefined;
}

/** Everything that this principal synchronises, according to its flags. */
export function hubSync(options: {
  flags: PrincipalFlags;
  client: KubeClient;
  caches: PrincipalCaches;
  principalUid: string;
  /** When a managed agent that is not connected was last connected, if that is known. */
  lastSeen: (agent: string) => Date | undefined;
  /** Namespace of Argo CD on an agent's cluster, as the agent reported it. */
  agentNamespace: (agent: string) => string | undefined;
  /** The name of the agent's cluster in the hub's Argo CD, undefined while it has none. */
  clusterOf: (agent: string) => string | undefined;
  namespaceCreation: NamespaceCreation | undefined;
  /** Called when an agent sent a forbidden event. */
  refused: (agent: string, resourceType: string) => void;
  /** Called when an object of an autonomous agent cannot be mirrored. */
  onFailure: (trouble: MirrorFailure) => void;
  detail: Detail;
  logger: Logger;
}): HubSynchronisation {
  const { flags, client, caches, principalUid, namespaceCreation, detail, logger } = options;
  const { namespace } = flags;
  const mapping: Mapping = flags['destination-based-mapping'] ? 'destination' : 'namespace';
  const runtime = processRuntime(logger);
  const store = detailedStores({ client, fieldManager: principalFieldManager, detail, logger });
  const projects = store<AppProject>(argoAppProjects, caches.AppProjects);
  const hubApplications = store<Application>(argoApplications, caches.Applications);
  const common = { namespace, principalUid, mapping, runtime };
  // These caches serve other purposes too, and are therefore not restricted.
  const selects = labelSelector(flags['label-selector']);
  const tuning = { concurrency: flags['event-processors'] };
  const mirrors = new ApplicationMirrors({
    applications: hubApplications,
    principalUid,
    clusterOf: options.clusterOf,
    ensureNamespace: namespaceCreation && hubNamespaceCreator(client, namespaceCreation, logger),
    onFailure: options.onFailure,
    tuning,
    runtime,
  });
  const router = applicationRouter({ namespace, allowedNamespaces: flags['allowed-namespaces'], mapping });
  const agentOf = mapping === 'destination' ? withoutMirrors(router, (one) => mirrors.isMirror(one)) : router;
  const sync = new HubSync({
    managed: [
      // In this order: Argo CD refuses an Application whose project it does not know yet.
      publishAppProjects({ store: projects, ...common }),
      publishRepositories({ store: store<RepositorySecret>(secrets, caches.Secrets), projects, selects, ...common }),
      publishGpgKeys({ store: store<GpgKeys>(configMaps, caches['GPG keys']), selects, namespace, runtime }),
      new HubApplications({
        applications: hubApplications,
        principalUid,
        agentOf,
        ...(mapping === 'destination'
          ? {
              namespaceOf: (agent, local) =>
                sameNamespaces(namespace, options.agentNamespace(agent) ?? '').toHub(local),
            }
          : {}),
        lastSeen: options.lastSeen,
        tuning,
        runtime,
      }),
    ],
    refused: (agent, { target }) => options.refused(agent, target),
    autonomous: [
      new ProjectMirrors({ store: projects, namespace, onFailure: options.onFailure, tuning, runtime }),
      mirrors,
    ],
    runtime,
  });
  return { sync, agentOf, clusterChanged: (agent) => mirrors.clusterChanged(agent) };
}
