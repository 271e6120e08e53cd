import { z } from 'zod';
import { type MergePatch, parseJson } from '../../../base/index.ts';
import { type Application, applicationSchema } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import { annotations } from '../../names.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { sourceUidOf } from '../copy.ts';

/** All annotations of an object together may have 256 KiB, and the hub's are there too. */
const longest = 64 * 1024;

const note = z.object({ resourceId: z.string(), eventId: z.string(), object: applicationSchema });

/**
 * What is noted on a copy of an operation that waits, so that it outlives this program: as much of the message as deciding
 * about it takes. Undefined when that is too long.
 */
export function noteFor({ resourceId, eventId, object }: ApplicationMessage): string | undefined {
  const { name, namespace, resourceVersion, creationTimestamp } = object.metadata;
  const text = JSON.stringify({
    resourceId,
    eventId,
    object: {
      metadata: { name, namespace, uid: sourceUidOf(object), resourceVersion, creationTimestamp },
      spec: {},
      operation: object.operation,
      status: { operationState: { startedAt: object.status?.operationState?.startedAt } },
    },
  });
  return text.length > longest ? undefined : text;
}

/** The message that is noted on a copy; undefined when none is, when it cannot be read, or when it is about another source. */
export function notedOn(copy: Application): ApplicationMessage | undefined {
  const text = copy.metadata.annotations?.[annotations.waitingOperation];
  const message = text === undefined ? undefined : note.safeParse(jsonOf(text)).data;
  return message !== undefined && sourceUidOf(message.object) === copiedFrom(copy)
    ? { target: 'application', type: 'set-operation', ...message }
    : undefined;
}

/** What has to be patched on a copy on which nothing is to be noted any more. */
export function withoutNote({ metadata }: Application): MergePatch {
  return metadata.annotations?.[annotations.waitingOperation] === undefined
    ? {}
    : { metadata: { annotations: { [annotations.waitingOperation]: null } } };
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
