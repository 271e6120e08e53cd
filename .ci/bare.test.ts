import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { onPath } from '../e2e/tools/index.ts';
import { bareEnvironment, hiddenVariables, visible } from './bare.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bare-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A folder of executables. */
function programs(name: string, ...names: readonly string[]): string {
  const path = join(folder, name);
  mkdirSync(path);
  for (const one of names) {
    writeFileSync(join(path, one), '', { mode: 0o755 });
  }
  return path;
}

test('programs and variables that the README does not ask for are hidden, and nothing else', async () => {
  const [plain, mixed] = [programs('plain', 'git'), programs('mixed', 'node', 'podman', 'chromium')];
  const path = [plain, mixed, join(folder, 'none'), mixed].join(':');
  const machine = { PATH: path, HOME: '/root', TOOLS_CACHE: '/cache', PREVIOUS: 'v1', ARGOCD_BIN: '/argocd' };
  expect(visible(machine).sort()).toEqual(['ARGOCD_BIN', 'PREVIOUS', 'chromium', 'podman']);

  const bare = await bareEnvironment(machine, programs('links'));
  expect(visible(bare)).toEqual([]);
  expect(bare).toEqual({ PATH: expect.any(String), HOME: '/root', TOOLS_CACHE: '/cache' });
  expect(onPath('git', bare.PATH)).toBe(join(plain, 'git'));
  expect(onPath('node', bare.PATH)).toContain(join(folder, 'links'));
});

test('every variable that CONTRIBUTING.md lists for tests is hidden', () => {
  const text = readFileSync(new URL('../CONTRIBUTING.md', import.meta.url), 'utf8');
  const [table = ''] = /(?<=^### Tests with .*\n)[\s\S]*?(?=^#)/m.exec(text) ?? [];
  const listed = [...table.matchAll(/`([A-Z_]+)=/g)].map(([, name = '']) => name);
  expect(listed.length).toBeGreaterThan(20);
  expect(listed.filter((name) => !hiddenVariables.has(name))).toEqual([]);
});
