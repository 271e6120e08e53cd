import { expect, test } from 'vitest';
import { resourceListChecksum } from '../checksums.ts';
import { CopyResync } from './copy-resync.ts';
import type { Copy, CopySync } from './kind-sync.ts';
import type { Message } from './messages.ts';
import type { ResyncContext } from './peer-sync.ts';

const kind = 'Application';
const copy = (name: string): Copy => ({ ref: { namespace: 'argocd', name }, name, uid: `source-of-${name}` });
const sumOf = (...names: string[]) =>
  resourceListChecksum(names.map((name) => ({ kind, name, uid: `source-of-${name}` })));

function start() {
  const copies = [copy('web')];
  const posted: Message[] = [];
  const withdrawn: string[] = [];
  let pending = 0;
  const messages = {
    get pending() {
      return pending;
    },
    post: (_name: string, make: () => Message) => {
      pending++;
      posted.push(make());
    },
    withdraw: (name: string) => withdrawn.push(name),
  };
  const sync = { kind, copies: () => copies, reportOf: ({ name }: { name: string }) => ({ name }) };
  const resync = new CopyResync({
    kinds: [sync as unknown as CopySync],
    messages: messages as unknown as ResyncContext<CopySync>['messages'],
    clock: { now: () => 0, after: () => () => undefined },
    acknowledge: () => undefined,
  });
  const delivered = () => {
    pending = 0;
    resync.delivered();
  };
  return { resync, copies, posted, withdrawn, delivered };
}

test('a copy that appears while the others are reported is reported before the list: it does not count as missing', () => {
  const { resync, copies, posted, delivered } = start();
  resync.connected();
  copies.push(copy('shop'));
  delivered();
  delivered();
  expect(posted).toMatchObject([
    { type: 'request-update', payload: { name: 'web' } },
    { type: 'request-update', payload: { name: 'shop' } },
    { type: 'request-synced-resource-list', payload: { checksum: sumOf('web', 'shop'), complete: true } },
  ]);
});

test('after a restore every copy is reported again, also when it comes while the reports are under way', () => {
  const { resync, copies, posted, withdrawn, delivered } = start();
  resync.connected();
  delivered();
  copies.splice(0, 1, copy('shop'));
  resync.restored(true);
  delivered();
  delivered();
  resync.restored(true);
  delivered();
  expect(posted.map(({ type }) => type)).toEqual([
    ...['request-update', 'request-synced-resource-list'],
    ...['request-update', 'request-synced-resource-list'],
    ...['request-update', 'request-synced-resource-list'],
  ]);
  expect(posted[3]).toMatchObject({ payload: { checksum: sumOf('shop') } });
  expect(withdrawn, 'the list that was on its way').toEqual(['list']);
});

test('a restore without a connection is told on the next one', () => {
  const { resync, posted, delivered } = start();
  resync.connected();
  delivered();
  delivered();
  resync.disconnected();
  resync.restored(false);
  expect(posted).toHaveLength(2);
  resync.connected();
  expect(posted).toHaveLength(3);
});
