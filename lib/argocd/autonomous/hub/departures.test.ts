import { expect, test } from 'vitest';
import type { Message } from '../../index.ts';
import { alone, incoming, own } from '../testing/alone.ts';

const leaving = (uid: string) => {
  const object = own(uid);
  return { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-01-02T03:04:05Z' } };
};
const questions = (sent: readonly Message[]) =>
  sent.filter((one) => one.target === 'resourceResync' && one.type === 'request-update');

test('defect 55: an agent whose deletion does not come is asked, until it says that the Application is gone', async () => {
  const { lab, principal } = await alone();
  principal.sent.length = 0;
  principal.receive(incoming('spec-update', leaving('old')));
  await lab.run(29_000);
  expect(questions(principal.sent)).toEqual([]);
  await lab.run(2_000);
  expect(questions(principal.sent)).toMatchObject([{ payload: { name: 'shop', uid: 'old', checksum: null } }]);
  principal.receive(incoming('spec-update', leaving('old')));
  await lab.run(31_000);
  expect(questions(principal.sent)).toHaveLength(2);
  principal.receive(incoming('delete', own('old')));
  await lab.run(120_000);
  expect(questions(principal.sent)).toHaveLength(2);
  expect(principal.mirror()).toBeUndefined();
});

test('one that is not removed after all is not asked about', async () => {
  const { lab, principal } = await alone();
  principal.receive(incoming('spec-update', leaving('old')));
  principal.receive(incoming('spec-update', own('old')));
  principal.sent.length = 0;
  await lab.run(120_000);
  expect(questions(principal.sent)).toEqual([]);
});
