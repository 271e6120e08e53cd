import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ctlExecutable } from '../executable.ts';
import { referenceOf } from '../reference.ts';

const page = new URL('../../docs/argocd-agentctl.md', import.meta.url).pathname;
const mark = '## All commands\n\n';

test('the page has every command and flag. UPDATE_DOCS=1 writes it', async () => {
  const text = await readFile(page, 'utf8');
  const at = text.indexOf(mark);
  expect(at).toBeGreaterThan(0);
  const wanted = text.slice(0, at + mark.length) + referenceOf(ctlExecutable());
  if (process.env.UPDATE_DOCS === '1') {
    await writeFile(page, wanted);
    return;
  }
  expect(text).toBe(wanted);
});
