import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findVersionBefore } from './version-before.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'version-before-'));
  git(['init', '--quiet', '--initial-branch=main']);
});
afterEach(() => rmSync(folder, { recursive: true }));

function git(args: readonly string[], date = '2020-01-01T00:00:00'): string {
  const user = ['-c', 'user.name=user', '-c', 'user.email=user@example.com'];
  const env = { ...process.env, GIT_COMMITTER_DATE: `${date}Z` };
  return execFileSync('git', [...user, ...args], { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' }).trim();
}

/** Makes a commit. @returns how Git calls it */
function commit(date: string): string {
  git(['commit', '--allow-empty', '--message=x'], date);
  return git(['rev-parse', '--short=12', 'HEAD']);
}

const before = (asked = '') => findVersionBefore(folder, asked);

test('without a release it is the last commit of the week before, all week long', () => {
  commit('2026-11-20T08:00:00');
  const sunday = commit('2026-11-22T23:59:59');
  for (const day of ['2026-11-23T00:00:00', '2026-11-25T12:00:00', '2026-11-29T23:59:59']) {
    commit(day);
    expect(before()).toEqual({ revision: sunday });
  }
  const last = git(['rev-parse', '--short=12', 'HEAD']);
  commit('2026-11-30T00:00:00');
  expect(before()).toEqual({ revision: last });
});

test('it is the last release before this commit, and not a preview of one', () => {
  commit('2026-11-20T08:00:00');
  git(['tag', 'v0.1.0']);
  commit('2026-11-27T08:00:00');
  git(['tag', 'v0.2.0-rc.1']);
  git(['tag', 'notes']);
  expect(before()).toEqual({ revision: 'v0.1.0' });
  commit('2026-11-27T09:00:00');
  git(['tag', '--annotate', '--message=x', 'v0.2.0']);
  expect(before()).toEqual({ revision: 'v0.1.0' });
  commit('2026-11-27T10:00:00');
  expect(before()).toEqual({ revision: 'v0.2.0' });
});

test('PREVIOUS names another one', () => {
  expect(before('HEAD~3')).toEqual({ revision: 'HEAD~3' });
});

test('without a history that reaches back there is none, and the remedy is said', () => {
  expect(before()).toEqual({ remedy: expect.stringContaining('PREVIOUS=') });
  commit('2026-11-24T08:00:00');
  commit('2026-11-25T08:00:00');
  expect(before()).toEqual({ remedy: expect.stringContaining('PREVIOUS=') });

  const shallow = join(folder, 'shallow');
  git(['clone', '--quiet', '--depth=1', `file://${folder}`, shallow]);
  expect(findVersionBefore(shallow, '')).toEqual({ remedy: 'git fetch --unshallow --tags' });

  const exported = join(folder, 'exported');
  mkdirSync(exported);
  expect(findVersionBefore(exported, '')).toEqual({ remedy: expect.stringContaining('clone') });
});
