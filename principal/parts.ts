import {
  type Application,
  type AppProject,
  applicationRouter,
  type ConfigMap,
  type Mapping,
  PrincipalParts,
  PrincipalSync,
  publishAppProjects,
  publishGpgKeys,
  publishRepositories,
  type Secret,
  sameNamespaces,
} from '../lib/argocd/index.ts';
import { applications, appProjects, kubeStore, loggedStore } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, type ResourceType, secrets } from '../lib/kube/index.ts';
import { type Detail, detailOf, type Logger } from '../lib/ops/index.ts';
import type { Store, StoredObject } from '../lib/sync/index.ts';
import type { PrincipalCaches } from './caches.ts';
import type { PrincipalFlags } from './flags.ts';

/** Everything that this principal keeps in step, as its flags say. */
export function principalParts(options: {
  flags: PrincipalFlags;
  client: KubeClient;
  caches: PrincipalCaches;
  principalUid: string;
  /** Namespace of Argo CD on an agent's cluster, as the agent said. */
  agentNamespace: (agent: string) => string | undefined;
  detail: Detail;
  logger: Logger;
}): PrincipalParts {
  const { flags, caches, principalUid, detail, logger } = options;
  const { namespace } = flags;
  const mapping: Mapping = flags['destination-based-mapping'] ? 'destination' : 'namespace';
  const log = logger;
  const store = <T extends StoredObject>(
    type: ResourceType,
    informer: Parameters<typeof kubeStore>[0]['informer'],
  ): Store<T> =>
    loggedStore(kubeStore<T>({ client: options.client, type, informer, fieldManager }), {
      kind: type.kind,
      detail,
      logger,
      shown: (object) => detailOf(object, type.kind),
    });
  const projects = store<AppProject>(appProjects, caches.AppProjects);
  const common = { namespace, principalUid, mapping, log };
  return new PrincipalParts({
    managed: [
      // In this order: Argo CD refuses an Application whose project it does not know yet.
      publishAppProjects({ store: projects, ...common }),
      publishRepositories({ store: store<Secret>(secrets, caches.Secrets), projects, ...common }),
      publishGpgKeys({ store: store<ConfigMap>(configMaps, caches['GPG keys']), namespace, log }),
      new PrincipalSync({
        applications: store<Application>(applications, caches.Applications),
        principalUid,
        agentOf: applicationRouter({ namespace, allowedNamespaces: flags['allowed-namespaces'], mapping }),
        ...(mapping === 'destination'
          ? {
              namespaceOf: (agent, local) =>
                sameNamespaces(namespace, options.agentNamespace(agent) ?? '').toHub(local),
            }
          : {}),
        concurrency: flags['event-processors'],
        log,
      }),
    ],
    log,
  });
}

const fieldManager = 'argocd-agent-principal';
