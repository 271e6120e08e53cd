import { expect, test } from 'vitest';
import { anyMap, Random } from '../../e2e/random/index.ts';
import type { Message } from '../argocd/index.ts';
import { canonicalJson } from '../base/index.ts';
import { effort } from '../base/testing.ts';
import { eventTypes, heartbeatEvent } from '../wire/index.ts';
import { eventOf, messageOf } from './index.ts';

const ids = { resourceId: 'app_1', eventId: 'app_1_2' };
const object = {
  metadata: { name: 'app', namespace: 'ns', uid: '1', resourceVersion: '2' },
  spec: { project: 'default' },
};
const secret = { metadata: object.metadata, data: { url: 'aHR0cHM6Ly9naXQ=' } };
const messages: Message[] = [
  { target: 'application', type: 'create', principalUid: 'p', ...ids, object },
  { target: 'application', type: 'status-update', ...ids, object },
  {
    target: 'application',
    type: 'error',
    ...ids,
    error: { resourceName: 'app', resourceNamespace: 'ns', message: 'no' },
  },
  { target: 'appproject', type: 'spec-update', ...ids, object },
  {
    target: 'resourceResync',
    type: 'request-update',
    ...ids,
    payload: { kind: 'Application', name: 'app', namespace: 'ns', uid: '1', checksum: null },
  },
  { target: 'appproject', type: 'delete', ...ids, object: { ...object, spec: {} } },
  { target: 'repository', type: 'create', principalUid: 'p', ...ids, object: { ...secret, type: 'Opaque' } },
  { target: 'repository', type: 'delete', ...ids, object: secret },
  { target: 'gpgkey', type: 'spec-update', ...ids, object: { ...secret, data: { '4AEE18F83AFDEB23': '-----BEGIN' } } },
  { target: 'resourceResync', type: 'request-synced-resource-list', ...ids, payload: { checksum: 'YQ==' } },
  {
    target: 'resourceResync',
    type: 'request-synced-resource-list',
    ...ids,
    payload: { checksum: null, complete: true },
  },
];

test.each(messages)('$target $type survives the way over the wire', (message) => {
  const event = eventOf(message, 'agent://agent-managed');
  expect(event.source).toBe('agent://agent-managed');
  expect(event.extensions).toMatchObject({ resourceid: 'app_1', eventid: 'app_1_2' });
  expect(messageOf(event)).toEqual(message);
});

test('any values survive the way over the wire', () => {
  for (let seed = 1; seed <= effort(500, 20_000); seed++) {
    const random = new Random(seed);
    const [values, more, reported] = [anyMap(random, 5), anyMap(random, 4), anyMap(random, 4)];
    const application = {
      metadata: { ...object.metadata, labels: { constructor: 'x', toString: '' }, annotations: { valueOf: 'ü' } },
      spec: { ...object.spec, source: { helm: { valuesObject: values } }, sources: [{ helm: { valuesObject: more } }] },
      operation: { sync: { source: { helm: { valuesObject: more } } } },
      status: {
        sync: { comparedTo: { source: { helm: { valuesObject: reported } } } },
        history: [{ source: reported }],
      },
    };
    const message: Message = { target: 'application', type: 'status-update', ...ids, object: application };
    const arrived = messageOf(eventOf(message, ''));
    expect(canonicalJson(arrived), `seed ${seed}`).toBe(canonicalJson(message));
  }
});

test('the type and the subject are those of the originals', () => {
  expect(eventOf(messages[0] as Message, '')).toMatchObject({
    type: eventTypes.create,
    target: 'application',
    subject: 'ns/app',
    extensions: { principaluid: 'p' },
  });
});

test('events about other things are no messages; bad payloads are errors', () => {
  expect(messageOf(heartbeatEvent({ source: '' }))).toBeUndefined();
  const event = eventOf(messages[0] as Message, '');
  expect(messageOf({ ...event, type: 'GET' })).toBeUndefined();
  expect(messageOf({ ...event, target: 'repository', type: eventTypes.statusUpdate })).toBeUndefined();
  expect(messageOf({ ...event, target: 'applicationset' })).toBeUndefined();
  const numbers = { ...event, target: 'gpgkey', data: Buffer.from('{"metadata":{"name":"x"},"data":{"a":1}}') };
  expect(() => messageOf(numbers)).toThrow(/does not have the expected form/);
  expect(() => messageOf({ ...event, data: Buffer.from('{"metadata":{}}') })).toThrow(
    /does not have the expected form/,
  );
  expect(() => messageOf({ ...event, data: Buffer.from('nonsense') })).toThrow(/is not JSON/);
});

test('an Application with 1,500 conditions, as Argo CD writes one for each repeated resource, is a message', () => {
  const conditions = Array.from({ length: 1_500 }, (_, index) => ({
    type: 'RepeatedResourceWarning',
    message: `Resource apiextensions.k8s.io/CustomResourceDefinition//${index} appeared 2 times`,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }));
  const many: Message = {
    target: 'application',
    type: 'status-update',
    ...ids,
    object: { ...object, status: { conditions } },
  };
  expect(messageOf(eventOf(many, 'us'))).toEqual(many);
});
