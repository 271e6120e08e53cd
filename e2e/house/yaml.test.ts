import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

const root = new URL('../..', import.meta.url).pathname;
// Templates of Helm are no YAML yet. Those of folder templates are delivered as JSON.
const files = globSync('{charts,install}/**/*.yaml', { cwd: root })
  .filter((file) => !file.includes('/templates/') && !file.includes('node_modules'))
  .sort();

test('there are files to read', () => expect(files.length).toBeGreaterThan(8));

test.each(files)('%s is the same for kubectl and Helm (YAML 1.1) as for YAML 1.2', (file) => {
  const text = readFileSync(join(root, file), 'utf8');
  const [older, newer] = (['1.1', '1.2'] as const).map((version) =>
    parseAllDocuments(text, { version }).map((document) => document.toJS() as unknown),
  );
  expect(older).toEqual(newer);
});
