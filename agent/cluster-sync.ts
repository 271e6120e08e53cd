import {
  AgentSync,
  type Application,
  ApplicationCopies,
  type AppProject,
  ClusterApplications,
  type GpgKeys,
  KeptApplications,
  matchesAny,
  type OperationRevisions,
  publishOwnAppProjects,
  type RepositorySecret,
  replicateAppProjects,
  replicateGpgKeys,
  replicateRepositories,
  sameNamespaces,
  warnOfUnreadableEntries,
} from '../lib/argocd/index.ts';
import type { AgentMode } from '../lib/auth/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { argoApplications, argoAppProjects, detailedStores, namespaceCreator } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, secrets } from '../lib/kube/index.ts';
import type { Detail } from '../lib/ops/index.ts';
import { type Delivered, processRuntime } from '../lib/sync/index.ts';
import type { Tracer } from '../lib/tracing/index.ts';
import type { AgentCaches } from './caches.ts';
import type { AgentFlags } from './flags.ts';

/** Who writes for the agent. */
export const agentFieldManager = 'argocd-agent';

/** Everything that this agent synchronises with its principal, according to its flags. */
export function agentSync(options: {
  mode: AgentMode;
  flags: AgentFlags;
  client: KubeClient;
  caches: AgentCaches;
  /** Called when the principal has acknowledged a state. */
  delivered: (delivery: Delivered) => void;
  /** What is done about a message is part of its trace. Undefined: nothing is traced. */
  tracer: Tracer | undefined;
  detail: Detail;
  logger: Logger;
}): AgentSync {
  const { flags, client, caches, detail, logger } = options;
  const { namespace } = flags;
  const { tracer, delivered } = options;
  const runtime = { ...processRuntime(logger), delivered, context: tracer && (() => tracer.keep()) };
  const fieldManager = agentFieldManager;
  const store = detailedStores({ client, fieldManager, detail, logger });
  const [local, projects] = [
    store<Application>(argoApplications, caches.Applications),
    store<AppProject>(argoAppProjects, caches.AppProjects),
  ];
  // Acknowledgements reach the engine later by this time.
  const heldBackMs = flags['buffer-informer-event-interval'];
  const tuning =
    heldBackMs > 0 ? { resend: { baseMs: 5_000 + heldBackMs, factor: 4, capMs: 120_000 + heldBackMs, jitter: 1 } } : {};
  if (options.mode === 'autonomous') {
    return new AgentSync({
      mode: 'autonomous',
      kinds: [
        // In this order: Argo CD on the hub refuses an Application whose project it does not know yet.
        publishOwnAppProjects({ store: projects, namespace, runtime }),
        new ClusterApplications({
          applications: local,
          namespace,
          revisions: flags['operation-revisions'] as OperationRevisions,
          runtime,
          tuning,
        }),
      ],
      runtime,
    });
  }
  warnOfUnreadableEntries('allowed-namespaces', flags['allowed-namespaces'], logger);
  const kept = new KeptApplications(local);
  const adoptionPolicy = flags['adoption-policy'] as 'always' | 'never';
  return new AgentSync({
    mode: 'managed',
    kinds: [
      replicateAppProjects({ store: projects, namespace, kept, runtime }),
      replicateRepositories({
        store: store<RepositorySecret>(secrets, caches.Secrets),
        namespace,
        adoptionPolicy,
        kept,
        runtime,
      }),
      replicateGpgKeys({
        store: store<GpgKeys>(configMaps, caches['GPG keys']),
        namespace,
        deletes: !flags['keep-gpg-keys'],
        runtime,
      }),
      new ApplicationCopies({
        applications: local,
        namespace,
        ...(flags['destination-based-mapping']
          ? {
              mapping: (principalNamespace: string) => sameNamespaces(principalNamespace, namespace),
              isAllowed: (name: string) => matchesAny(flags['allowed-namespaces'], name),
              ensureNamespace: flags['create-namespace']
                ? namespaceCreator({ client, fieldManager, logger })
                : undefined,
            }
          : {}),
        mismatchPolicy: flags['source-uid-mismatch-policy'] as 'recreate' | 'upsert',
        adoptionPolicy,
        onRecreate: flags['on-application-recreate'] as 'ignore' | 'clear-status' | 'resync',
        runtime,
        tuning,
      }),
    ],
    runtime,
  });
}
