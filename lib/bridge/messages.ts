import { z } from 'zod';
import {
  applicationSchema,
  appProjectSchema,
  configMapSchema,
  type Message,
  namespaceName,
  objectName,
  opaqueId,
  secretSchema,
  type UnreadableMessage,
} from '../argocd/index.ts';
import { dataOf, eventTypes, messageEvent, objectEvent, targets, type WireEvent } from '../wire/index.ts';

const maxErrorCharacters = 4_096;

const error = z.object({
  resourceName: objectName,
  resourceNamespace: namespaceName,
  message: z.string().transform((text) => text.slice(0, maxErrorCharacters)),
});
const resyncKind = z.enum(['Application', 'AppProject', 'Repository', 'GPGKey']);
const checksum = opaqueId.nullish().transform((value) => value ?? null);
const resyncPayloads: Readonly<Record<string, z.ZodType>> = {
  'request-update': z.object({
    kind: resyncKind,
    name: objectName,
    namespace: namespaceName.exactOptional(),
    uid: opaqueId,
    checksum,
    digest: opaqueId.exactOptional(),
    principalUid: opaqueId.exactOptional(),
  }),
  'request-synced-resource-list': z.object({ checksum, complete: z.boolean().exactOptional() }),
  'response-synced-resource': z.object({
    kind: resyncKind,
    name: objectName,
    namespace: namespaceName.exactOptional(),
    uid: opaqueId,
  }),
  'request-resource-resync': z.object({}),
};
const types: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(eventTypes).map((full) => [full, full.slice(full.lastIndexOf('.') + 1)]),
);
const fullTypes: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(types).map(([full, short]) => [short, full]),
);
const applicationTypes = ['create', 'spec-update', 'delete', 'set-operation', 'terminate-operation', 'status-update'];
const replicaTypes = ['create', 'spec-update', 'delete'];
/** Kinds that go one way. */
const replicaSchemas: Readonly<Record<string, z.ZodType>> = {
  [targets.appProject]: appProjectSchema,
  [targets.repository]: secretSchema,
  [targets.gpgKey]: configMapSchema,
};

/**
 * The engine's message that an event carries; undefined for other events (live resources, Redis, heartbeats, kinds and
 * types that this version does not know).
 * @throws WireError when the payload is not what its target and type promise
 */
export function messageOf(event: WireEvent): Message | undefined {
  const type = types[event.type] ?? '';
  const uid = event.extensions.principaluid;
  const address = {
    resourceId: event.resourceId,
    eventId: event.eventId,
    ...(uid === undefined || uid === '' ? {} : { principalUid: uid }),
  };
  const message = (fields: object) => ({ ...address, ...fields, type }) as unknown as Message;
  switch (event.target) {
    case targets.application:
      if (type === 'error') {
        return message({ target: event.target, error: dataOf(event, error) });
      }
      if (!applicationTypes.includes(type)) {
        return undefined;
      }
      return message({ target: event.target, object: dataOf(event, applicationSchema) });
    case targets.appProject:
    case targets.repository:
    case targets.gpgKey: {
      const schema = replicaTypes.includes(type) ? replicaSchemas[event.target] : undefined;
      return schema && message({ target: event.target, object: dataOf(event, schema) });
    }
    case targets.resourceResync: {
      const schema = resyncPayloads[type];
      return schema && message({ target: event.target, payload: dataOf(event, schema) });
    }
    default:
      return undefined;
  }
}

const subject = z
  .string()
  .transform((text) => ({ namespace: text.slice(0, text.indexOf('/')), name: text.slice(text.indexOf('/') + 1) }))
  .pipe(z.object({ namespace: namespaceName, name: objectName }));
const aboutObjects = z.enum([targets.application, targets.appProject, targets.repository, targets.gpgKey]);

/** What is to be said about an event that cannot be read; undefined when it does not tell which object it is about. */
export function unreadableMessage(event: WireEvent, reason: string): UnreadableMessage | undefined {
  const target = aboutObjects.safeParse(event.target).data;
  const ref = subject.safeParse(event.subject).data;
  return target && ref && { target, ...ref, reason };
}

/** The event that carries a message. `source` is the CloudEvent's source. */
export function eventOf(message: Message, source: string): WireEvent {
  const type = fullTypes[message.type];
  if (type === undefined) {
    throw new TypeError(`no event type for messages of type ${message.type}`);
  }
  if (message.target === targets.resourceResync) {
    return messageEvent(message.target, type, message.payload, { source }, message);
  }
  if (message.type === 'error') {
    return messageEvent(message.target, type, message.error, { source }, message);
  }
  const { principalUid } = message;
  const origin = principalUid === undefined ? { source } : { source, principalUid };
  return objectEvent(message.target, type, message.object, origin, message);
}
