const prefix = 'io.argoproj.argocd-agent.event';

/** The type strings of argocd-agent's events. Requests for live resources and logs carry a bare HTTP method instead. */
export const eventTypes = {
  ping: `${prefix}.ping`,
  pong: `${prefix}.pong`,
  create: `${prefix}.create`,
  delete: `${prefix}.delete`,
  specUpdate: `${prefix}.spec-update`,
  statusUpdate: `${prefix}.status-update`,
  setOperation: `${prefix}.set-operation`,
  terminateOperation: `${prefix}.terminate-operation`,
  processed: `${prefix}.processed`,
  get: `${prefix}.get`,
  response: `${prefix}.response`,
  redisRequest: `${prefix}.redis-request`,
  redisResponse: `${prefix}.redis-response`,
  requestSyncedResourceList: `${prefix}.request-synced-resource-list`,
  responseSyncedResource: `${prefix}.response-synced-resource`,
  requestUpdate: `${prefix}.request-update`,
  requestResourceResync: `${prefix}.request-resource-resync`,
  clusterCacheInfoUpdate: `${prefix}.cluster-cache-info-update`,
  /** Not of argocd-agent: only for agents that say that they know it. */
  clusterCacheInvalidate: `${prefix}.cluster-cache-invalidate`,
  terminalRequest: `${prefix}.terminal-request`,
  error: `${prefix}.error`,
} as const;

/** The target of an event: the CloudEvent's `dataschema`, case-sensitive. */
export const targets = {
  application: 'application',
  appProject: 'appproject',
  eventProcessed: 'eventProcessed',
  resource: 'resource',
  redis: 'redis',
  resourceResync: 'resourceResync',
  clusterCacheInfoUpdate: 'clusterCacheInfoUpdate',
  repository: 'repository',
  gpgKey: 'gpgkey',
  containerLog: 'containerlog',
  heartbeat: 'heartbeat',
  terminal: 'terminal',
  applicationSet: 'applicationset',
} as const;

/** One of the known targets. */
export type WireTarget = (typeof targets)[keyof typeof targets];

/**
 * An event of the protocol, decoded.
 *
 * `target` is any string here, because an original principal acknowledges events with a target that it does not know:
 * what to do with one is the receiver's decision.
 */
export interface WireEvent {
  /** Full type string, one of `eventTypes` or an HTTP method. */
  readonly type: string;
  readonly target: string;
  /** `agent://agent-managed` from agents, empty from principals. For logs only. */
  readonly source: string;
  /** `<namespace>/<name>` on events about objects. For logs only. */
  readonly subject?: string;
  /** Names the resource: events with the same id are delivered in order, one at a time. */
  readonly resourceId: string;
  /** Names the event: an acknowledgement is matched by `resourceId` and `eventId`. */
  readonly eventId: string;
  /** Every extension attribute that is a string, including `resourceid` and `eventid`. */
  readonly extensions: Readonly<Record<string, string>>;
  /** The media type of `data`, absent without data. */
  readonly contentType?: string;
  /** Mostly JSON; empty for acknowledgements and heartbeats. */
  readonly data: Uint8Array;
}

/** The `source` that every agent writes, whatever its mode (argocd-agent's agent does so). */
export const agentSource = 'agent://agent-managed';

/** The `source` that a principal writes (argocd-agent's principal leaves it empty). */
export const principalSource = '';

/**
 * Whether an event acknowledges another one. Everything else must be acknowledged, heartbeats included: its sender keeps
 * sending it until then.
 */
export function isAcknowledgement(event: WireEvent): boolean {
  return event.target === targets.eventProcessed;
}
