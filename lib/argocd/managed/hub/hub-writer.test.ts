import { expect, test } from 'vitest';
import { View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { skipSyncLabel } from '../../names.ts';
import { isSkipped } from '../../routing.ts';
import { hubApplication, Lab } from '../../testing/lab.ts';
import { HubWriter } from './hub-writer.ts';

test('an Application that is taken out of synchronisation, and so of the cache, is not awaited there', async () => {
  const lab = new Lab();
  lab.hub.isHidden = isSkipped;
  const doubted: string[] = [];
  const view = new View<Application>({
    clock: lab.time,
    changed: () => undefined,
    doubted: ({ name }) => void doubted.push(name),
  });
  view.follow(lab.hub);
  const { signal } = new AbortController();
  const writer = new HubWriter({ store: lab.hub, view, log: lab.common('p').runtime.log });
  lab.hub.objects.create(hubApplication({ name: 'out', labels: { [skipSyncLabel]: 'true' } }));
  await writer.check({ namespace: 'a', name: 'out' }, signal);
  await lab.run(3_600_000);
  expect(view.get({ namespace: 'a', name: 'out' })).toBeUndefined();
  expect(doubted).toEqual([]);
});
