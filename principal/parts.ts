import {
  type Application,
  type AppProject,
  applicationRouter,
  type Mapping,
  PrincipalParts,
  PrincipalProjects,
  PrincipalSync,
  sameNamespaces,
} from '../lib/argocd/index.ts';
import { applications, appProjects, kubeStore, loggedStore } from '../lib/bridge/index.ts';
import type { KubeClient, ResourceType } from '../lib/kube/index.ts';
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
  return new PrincipalParts({
    managed: [
      new PrincipalProjects({
        store: store<AppProject>(appProjects, caches.AppProjects),
        principalUid,
        mapping,
        log,
      }),
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
