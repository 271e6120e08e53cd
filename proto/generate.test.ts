import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generate, generatedFiles } from './generate.ts';

const committed = join(import.meta.dirname, 'gen');
let fresh: string;

beforeAll(async () => {
  fresh = await mkdtemp(join(tmpdir(), 'proto-'));
  await generate(join(fresh, 'gen'));
});

afterAll(async () => {
  await rm(fresh, { recursive: true, force: true });
});

test('the committed code is what the .proto files give (npm run proto)', async () => {
  const files = await generatedFiles(join(fresh, 'gen'));
  expect(await generatedFiles(committed)).toEqual(files);
  for (const file of files) {
    expect(await readFile(join(committed, file), 'utf8'), file).toBe(await readFile(join(fresh, 'gen', file), 'utf8'));
  }
});
