import {
  type Application,
  ApplicationMirrors,
  type AppProject,
  applicationRouter,
  type ConfigMap,
  HubApplications,
  HubSync,
  type Mapping,
  type MirrorFailure,
  ProjectMirrors,
  publishAppProjects,
  publishGpgKeys,
  publishRepositories,
  type Secret,
  sameNamespaces,
  withoutMirrors,
} from '../lib/argocd/index.ts';
import { type Logger, labelSelector } from '../lib/base/index.ts';
import { applications, appProjects, kubeStore, loggedStore } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, type ResourceType, secrets } from '../lib/kube/index.ts';
import { type Detail, detailOf } from '../lib/ops/index.ts';
import { processRuntime, type Store, type StoredObject } from '../lib/sync/index.ts';
import type { PrincipalCaches } from './caches.ts';
import type { PrincipalFlags } from './flags.ts';
import { type NamespaceCreation, namespaceCreator } from './namespaces.ts';

/** What {@link principalParts} makes. */
export interface HubParts {
  readonly parts: HubSync;
  /** What the hub's Argo CD calls an agent's cluster may have changed. */
  clusterChanged(agent: string): void;
  /** The managed agent that has a hub Application; undefined when none has it. */
  agentOf(application: Application): string | undefined;
}

/** Everything that this principal keeps in step, as its flags say. */
export function principalParts(options: {
  flags: PrincipalFlags;
  client: KubeClient;
  caches: PrincipalCaches;
  principalUid: string;
  /** When a managed agent that is not connected was last, if that is known. */
  lastSeen: (agent: string) => Date | undefined;
  /** Namespace of Argo CD on an agent's cluster, as the agent said. */
  agentNamespace: (agent: string) => string | undefined;
  /** What the hub's Argo CD calls the agent's cluster, undefined while it has none. */
  clusterOf: (agent: string) => string | undefined;
  namespaceCreation: NamespaceCreation | undefined;
  /** Hears of what an agent sent and may not send. */
  refused: (agent: string, resourceType: string) => void;
  /** Hears what of an autonomous agent's cannot be shown on the hub. */
  onFailure: (trouble: MirrorFailure) => void;
  detail: Detail;
  logger: Logger;
}): HubParts {
  const { flags, client, caches, principalUid, detail, logger } = options;
  const { namespace } = flags;
  const mapping: Mapping = flags['destination-based-mapping'] ? 'destination' : 'namespace';
  const runtime = processRuntime(logger);
  const store = <T extends StoredObject>(
    type: ResourceType,
    informer: Parameters<typeof kubeStore>[0]['informer'],
  ): Store<T> =>
    loggedStore(kubeStore<T>({ client, type, informer, fieldManager }), {
      kind: type.kind,
      detail,
      logger,
      shown: (object) => detailOf(object, type.kind),
    });
  const projects = store<AppProject>(appProjects, caches.AppProjects);
  const hubApplications = store<Application>(applications, caches.Applications);
  const common = { namespace, principalUid, mapping, runtime };
  // These caches serve other purposes too, and are therefore not restricted.
  const selects = labelSelector(flags['label-selector']);
  const tuning = { concurrency: flags['event-processors'] };
  const mirrors = new ApplicationMirrors({
    applications: hubApplications,
    principalUid,
    clusterOf: options.clusterOf,
    ensureNamespace: namespaceCreator(client, options.namespaceCreation, logger),
    onFailure: options.onFailure,
    tuning,
    runtime,
  });
  const router = applicationRouter({ namespace, allowedNamespaces: flags['allowed-namespaces'], mapping });
  const agentOf = mapping === 'destination' ? withoutMirrors(router, (one) => mirrors.isMirror(one)) : router;
  const parts = new HubSync({
    managed: [
      // In this order: Argo CD refuses an Application whose project it does not know yet.
      publishAppProjects({ store: projects, ...common }),
      publishRepositories({ store: store<Secret>(secrets, caches.Secrets), projects, selects, ...common }),
      publishGpgKeys({ store: store<ConfigMap>(configMaps, caches['GPG keys']), selects, namespace, runtime }),
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
  return { parts, agentOf, clusterChanged: (agent) => mirrors.clusterChanged(agent) };
}

const fieldManager = 'argocd-agent-principal';
