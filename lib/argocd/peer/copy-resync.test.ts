import { expect, test } from 'vitest';
import { resourceListChecksum } from '../checksums.ts';
import { CopyResync } from './copy-resync.ts';
import type { Copy, CopySync } from './kind-sync.ts';
import type { Message } from './messages.ts';
import type { ResyncContext } from './peer-sync.ts';

test('a copy that appears while the others are reported is not in the list: the source sends what it is to be', () => {
  const kind = 'Application';
  const copy = (name: string): Copy => ({ ref: { namespace: 'argocd', name }, name, uid: `source-of-${name}` });
  const copies = [copy('web')];
  const posted: Message[] = [];
  let pending = 0;
  const messages = {
    get pending() {
      return pending;
    },
    post: (_name: string, make: () => Message) => {
      pending++;
      posted.push(make());
    },
  };
  const sync = { kind, copies: () => copies, reportOf: ({ name }: { name: string }) => ({ name }) };
  const resync = new CopyResync({
    kinds: [sync as unknown as CopySync],
    messages: messages as unknown as ResyncContext<CopySync>['messages'],
    clock: { now: () => 0, after: () => () => undefined },
    acknowledge: () => undefined,
  });
  resync.connected();
  copies.push(copy('shop'));
  pending = 0;
  resync.delivered();
  expect(posted).toMatchObject([
    { type: 'request-update', payload: { name: 'web' } },
    {
      type: 'request-synced-resource-list',
      payload: { checksum: resourceListChecksum([{ kind, name: 'web', uid: 'source-of-web' }]), complete: true },
    },
  ]);
});
