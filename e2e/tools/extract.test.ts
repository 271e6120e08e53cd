import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { tarOf } from '../../lib/base/index.ts';
import { extractMember } from './extract.ts';

test('a full disk is no fault of the archive', { tags: 'linux' }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'extract-'));
  try {
    const archive = join(folder, 'archive');
    writeFileSync(archive, gzipSync(tarOf([{ path: 'a/program', content: 'x'.repeat(1_000_000) }], new Date(0))));
    const extraction = extractMember(archive, 'a/program', '/dev/full');
    await expect(extraction).rejects.toThrow('/dev/full cannot be written: ENOSPC: no space left on device, write');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
