import { specChecksum } from '../../lib/argocd/index.ts';
import type { AgentMode } from '../../lib/auth/index.ts';
import {
  acknowledgement,
  agentSource,
  type EventStream,
  eventTypes,
  isAcknowledgement,
  messageEvent,
  objectEvent,
  runWireClient,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';

const origin = { source: agentSource };
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const kindOf: Readonly<Record<string, string>> = {
  [targets.application]: 'Application',
  [targets.appProject]: 'AppProject',
  [targets.repository]: 'Repository',
};

const targetOf = (kind: string) => Object.keys(kindOf).find((target) => kindOf[target] === kind) ?? '';

/** What an agent of a few lines does wrong. */
export interface AgentFaults {
  /** It acknowledges by the ids alone. */
  readonly bareAcknowledgements?: boolean;
  /** It does not acknowledge repetitions. */
  readonly deafToRepetitions?: boolean;
  /** Its copies have UIDs of their own. */
  readonly ownUids?: boolean;
  /** It never deletes. */
  readonly keepsAll?: boolean;
  /** It takes the first state of an object for ever. */
  readonly deafToChanges?: boolean;
  /** It forgets what was not acknowledged. */
  readonly forgetful?: boolean;
  /** It answers requests for any object. */
  readonly openToAll?: boolean;
  /** It says nothing about what it does not have. */
  readonly silentAboutAbsence?: boolean;
}

interface Held {
  readonly metadata: { name: string; namespace: string; uid: string; resourceVersion: string };
  readonly spec?: Record<string, unknown>;
  readonly data?: Record<string, unknown>;
}

/** Runs an agent whose cluster is a map, and that logs in by header without TLS, until the signal aborts. */
export function runSimpleAgent(port: number, mode: AgentMode, faults: AgentFaults, signal: AbortSignal): Promise<void> {
  const held = new Map<string, Held>();
  const seen = new Set<string>();
  const waiting = new Map<string, WireEvent>();
  const say = (stream: EventStream, event: WireEvent) => {
    if (!faults.forgetful) {
      waiting.set(event.eventId, event);
    }
    stream.send(event);
  };
  const about = (target: string, type: string, object: Held) => {
    const key = `${target}/${object.metadata.name}`;
    if (type === eventTypes.delete) {
      return faults.keepsAll || held.delete(key);
    }
    return (faults.deafToChanges && held.has(key)) || held.set(key, object);
  };
  const tell = (stream: EventStream, { name = '', namespace = '', kind = '' }: Record<string, string>) => {
    const found = held.get(`${targetOf(kind)}/${name}`);
    const { spec, data, metadata } = found ?? {};
    const uid = faults.ownUids ? 'own' : metadata?.uid;
    const checksum = found ? specChecksum(spec ?? data ?? {}) : null;
    const payload = { name, namespace, uid: found ? uid : '', kind, checksum };
    say(stream, messageEvent(targets.resourceResync, eventTypes.requestUpdate, payload, origin));
  };
  const answer = (stream: EventStream, event: WireEvent) => {
    const text = Buffer.from(event.data).toString();
    const payload = JSON.parse(text) as Record<string, string>;
    if (event.target in kindOf) {
      about(event.target, event.type, payload as unknown as Held);
    } else if (event.type === eventTypes.responseSyncedResource && mode === 'managed') {
      tell(stream, payload);
    } else if (event.type === eventTypes.requestUpdate && mode === 'autonomous' && !faults.silentAboutAbsence) {
      const { name = '', uid = '', namespace = '' } = payload;
      say(stream, objectEvent(targets.application, eventTypes.delete, { metadata: { name, uid, namespace } }, origin));
    } else if (event.target === targets.resource) {
      const isFree = payload.name === '' || faults.openToAll;
      const body = { uuid: payload.uuid, status: isFree ? 200 : 403, resource: '{"kind":"APIResourceList"}' };
      const ids = { eventId: event.eventId };
      stream.send(messageEvent(targets.resource, eventTypes.response, body, origin, ids));
    }
  };
  const take = (stream: EventStream, event: WireEvent) => {
    if (isAcknowledgement(event)) {
      waiting.delete(event.eventId);
      return;
    }
    if (event.target === 'conformance' || (faults.deafToRepetitions && seen.has(event.eventId))) {
      return;
    }
    seen.add(event.eventId);
    try {
      answer(stream, event);
    } catch {
      // Not JSON: acknowledged, and left.
    }
    const { resourceid = '', eventid = '' } = event.extensions;
    const done = acknowledgement(event, agentSource);
    stream.send(faults.bareAcknowledgements ? { ...done, extensions: { resourceid, eventid } } : done);
  };
  const first = mode === 'managed' ? eventTypes.requestSyncedResourceList : eventTypes.requestResourceResync;
  return runWireClient({
    server: `127.0.0.1:${port}`,
    tls: () => 'plaintext',
    credentials: () => ({ method: 'header', credentials: {} }),
    mode,
    version: '1.0.0',
    agentNamespace: 'argocd',
    backoff: { initialMs: 10, maxMs: 100 },
    environment: {},
    signal,
    logger: silent,
    onConnected: (stream) => {
      for (const event of waiting.values()) {
        stream.send(event);
      }
      say(stream, messageEvent(targets.resourceResync, first, { checksum: null }, origin));
      return { event: (event) => take(stream, event), closed: () => undefined };
    },
  });
}
