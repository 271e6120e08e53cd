import type { Logger } from '../../lib/base/index.ts';
import { type ConfigMap, type Informer, type KubeClient, type KubeObject, resourceType } from '../../lib/kube/index.ts';
import { cancelRequest, cancelType, impersonatedType, statusText, trackingOf } from '../../lib/live/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import { agentSource, dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { Logs } from './logs.ts';
import { ManagedObjects, type OwningApplication } from './managed/managed-objects.ts';
import { orphanNamespaces } from './managed/orphan-namespaces.ts';
import { RedisRequests, type RedisRequestsOptions } from './redis.ts';
import { LiveRequests, type RequestContext } from './requests.ts';
import { impersonationRule } from './resources/impersonation.ts';
import { type ResourceMetrics, Resources } from './resources/resources.ts';
import { type TerminalMetrics, Terminals } from './terminals/terminals.ts';

const settingsName = 'argocd-cm';
const statefulSets = resourceType<
  KubeObject & { spec?: { volumeClaimTemplates?: readonly { metadata?: { name?: string } }[] } }
>({
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  namespaced: true,
});

/** Serves the principal's requests for live data of this cluster. */
export function serveLive(options: {
  /** For live requests alone. */
  client: KubeClient;
  applications: Informer<OwningApplication>;
  appProjects: Informer<KubeObject>;
  /** Argo CD's ConfigMaps of settings. */
  settings: Informer<ConfigMap>;
  namespace: string;
  resourceMetrics: ResourceMetrics;
  /** Whether requests for resources are carried out, and terminals opened (`--enable-resource-proxy`). */
  isEnabled: boolean;
  access: 'managed' | 'all';
  /** The Redis of this cluster's Argo CD. */
  redis: Omit<RedisRequestsOptions, 'logger'>;
  terminals: { readonly idleMs: number; readonly metrics: TerminalMetrics };
  tracer: Tracer | undefined;
  logger: Logger;
}): LiveRequests {
  const { client, applications, appProjects, settings, namespace, access, logger } = options;
  const redis = new RedisRequests({ ...options.redis, logger });
  const managed = new ManagedObjects({
    applications,
    namespace,
    hasOrphans: orphanNamespaces({ applications, appProjects, namespace }),
    tracking: () => trackingOf(settings.get({ namespace, name: settingsName })?.data),
    read: async ({ apiVersion, kind, namespace: of, name }, signal) => {
      const type = await client.resolve(apiVersion, kind, signal);
      return type && client.get(type, { ...(type.namespaced ? { namespace: of } : {}), name }, signal);
    },
    statefulSets: async (of, signal) =>
      (await client.list(statefulSets, { namespace: of, signal })).map(({ metadata, spec }) => ({
        name: metadata.name,
        templates: (spec?.volumeClaimTemplates ?? []).map((template) => template.metadata?.name ?? ''),
      })),
  });
  const mayActAs = impersonationRule({ applications, appProjects, namespace });
  const resources = new Resources({ client, managed, access, mayActAs, metrics: options.resourceMetrics, logger });
  const logs = new Logs({ client, managed, access, logger });
  const { isEnabled } = options;
  const terminals = new Terminals({ client, managed, access, isEnabled, ...options.terminals, logger });
  const requests = new LiveRequests({
    handlers: {
      [targets.resource]: async (event, context) => {
        if (event.type === cancelType) {
          requests.cancel(dataOf(event, cancelRequest).uuid);
        } else if (isEnabled) {
          await resources.handle(event, context);
        } else {
          refuse(event, context, 501, 'live resources are switched off on this agent (--enable-resource-proxy)');
        }
      },
      // As in the original, logs are served whatever --enable-resource-proxy is.
      [targets.containerLog]: (event, context) => logs.handle(event, context),
      [targets.terminal]: (event, context) => terminals.handle(event, context),
      [targets.redis]: (event, context) => redis.handle(event, context),
    },
    ended: () => redis.disconnected(),
    overloaded: (event, context) => refuse(event, context, 429, 'the agent carries out too many requests already'),
    tracer: options.tracer,
    logger,
  });
  return requests;
}

function refuse({ eventId: uuid, type }: WireEvent, context: RequestContext, status: number, message: string): void {
  const payload = {
    uuid,
    status,
    resource: statusText(status, message),
    contentType: 'application/json',
    ...(type === impersonatedType ? { impersonated: true } : {}),
  };
  context.answer(
    messageEvent(targets.resource, eventTypes.response, payload, { source: agentSource }, { eventId: uuid }),
  );
}
