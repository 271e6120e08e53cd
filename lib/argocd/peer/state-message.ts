import type { OutboundEvent } from '../../sync/index.ts';
import { annotations } from '../names.ts';
import type { Metadata } from '../object.ts';
import type { Message } from './messages.ts';

/** The state of an object, or its deletion, as an outbox hands it over. */
export type StateEvent<T> = Exclude<OutboundEvent<T>, { readonly type: 'intent' }>;

/**
 * The message for the state of an object, or for its deletion.
 * @param common the message's target, and what stands in all messages to this peer
 * @param emptyContent the content of the object in a deletion, where only metadata counts
 * @param left the source of what leaves, in its last state, if it stays where it is: a deletion says so, and with which finalizers.
 *   Undefined: it is gone, and had none.
 */
export function stateMessage<T>(
  event: StateEvent<T>,
  common: { readonly target: Message['target']; readonly principalUid?: string },
  emptyContent: object = { spec: {} },
  left?: { readonly metadata: Metadata },
): Message {
  const { key, resourceId, eventId } = event;
  const ids = { ...common, resourceId, eventId };
  if (event.type === 'delete') {
    const { uid, version: resourceVersion } = event;
    const { finalizers = [] } = left?.metadata ?? {};
    const metadata: Metadata = {
      ...{ name: key.name, namespace: key.namespace, uid, resourceVersion },
      ...(finalizers.length > 0 && { finalizers: [...finalizers] }),
      ...(left && { annotations: { [annotations.stillThere]: 'true' } }),
    };
    return { ...ids, type: 'delete', object: { metadata, ...emptyContent } } as unknown as Message;
  }
  const type = event.type === 'create' ? 'create' : 'spec-update';
  return { ...ids, type, object: event.snapshot.object } as unknown as Message;
}
