import { expect, test } from 'vitest';
import { hubApplication, Lab } from '../testing/lab.ts';

test('says which Applications of an agent have waited for long, each once and no more than asked for', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  lab.hub.objects.create(hubApplication({ name: 'api' }));
  const principal = lab.principal();
  // This agent acknowledges nothing.
  principal.sync.connected('a', 'managed', { send: () => true, acknowledge: () => undefined });
  await lab.run(60_000);
  lab.hub.objects.patch({ namespace: 'a', name: 'shop' }, { operation: { sync: {} } });
  lab.hub.objects.create(hubApplication({ name: 'new' }));
  await lab.run(1_000);
  const late = (afterMs: number, most = 10) => principal.sync.late('a', 'Application', afterMs, most);
  expect(
    late(30_000)
      .map(({ namespace, name }) => `${namespace}/${name}`)
      .sort(),
  ).toEqual(['a/api', 'a/shop']);
  expect(late(30_000).every(({ ms }) => ms >= 60_000)).toBe(true);
  expect(late(0)).toHaveLength(3);
  expect(late(0, 2)).toHaveLength(2);
  expect(principal.sync.late('a', 'AppProject', 0, 10)).toEqual([]);
  expect(principal.sync.late('b', 'Application', 0, 10)).toEqual([]);
});
