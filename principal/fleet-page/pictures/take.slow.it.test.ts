import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { allMotifs, documentedMotifs, takePictures } from './take.ts';

const root = new URL('../../../', import.meta.url);

test('a small fleet in all pictures, without a complaint of the browser', { tags: 'chromium' }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pictures-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const troubles: string[] = [];
  let count = 0;
  for await (const taken of takePictures(allMotifs([3]), (name) => join(folder, name))) {
    troubles.push(...taken.troubles);
    expect((await readFile(join(folder, taken.name))).subarray(1, 4).toString()).toBe('PNG');
    count++;
  }
  expect(troubles).toEqual([]);
  expect(count).toBe(12);
});

test('the pictures of the documentation are there, small, and shown', async () => {
  const page = await readFile(new URL('docs/fleet-page.md', root), 'utf8');
  for (const name of documentedMotifs.keys()) {
    const picture = await readFile(new URL(`docs/pictures/${name}`, root));
    expect(picture.subarray(8, 12).toString()).toBe('WEBP');
    expect(picture.length).toBeLessThan(128 * 1024);
    expect(page).toContain(`](pictures/${name})`);
  }
});
