import { expect, test } from 'vitest';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { MessageHistory } from './message-history.ts';

const message = (type: ApplicationMessage['type'], version: string): ApplicationMessage => ({
  target: 'application',
  type,
  resourceId: 'shop_u',
  eventId: `shop_u_${version}`,
  object: { metadata: { namespace: 'argocd', name: 'shop', uid: 'u', resourceVersion: version }, spec: {} },
});

test('that a Go agent has no such Application is an answer when it was asked, and a late copy when it was not', () => {
  const history = new MessageHistory({ isInUse: () => true, inUse: () => 1 });
  const none = message('delete', '');
  expect(history.is(none)).toBe('new');
  history.received(none);
  expect(history.is(none), 'nothing came in between').toBe('again');
  history.received(message('create', '2'));
  expect(history.is(none), 'it was not asked since').toBe('late');
  history.asked('shop');
  expect(history.is(none)).toBe('again');
  history.received(none);
  expect(history.is(message('create', '2'))).toBe('late');
});
