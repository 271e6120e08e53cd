import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { needsOf } from './elf.ts';
import { layOutRoot } from './root.ts';

let folder: string;
const put = (path: string, content: string, mode = 0o600) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content, { mode });
};
const root = (path: string) => join(folder, 'root', path);

/** A base whose program is a small one of this machine, with its libraries behind the links that distributions have. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'image-root-'));
  const program = '/bin/true';
  const { loader = '', libraries } = needsOf(readFileSync(program));
  put('base/usr/local/bin/.keep', '');
  copyFileSync(program, join(folder, 'base/usr/local/bin/node'));
  put('base/usr/lib/x86_64-linux-gnu/.keep', '');
  for (const name of libraries) {
    const [found = ''] = globSync([
      `/lib/*-linux-*/${name}`,
      `/usr/lib/*-linux-*/${name}`,
      `/lib64/${name}`,
      `/lib/${name}`,
    ]);
    copyFileSync(found, join(folder, 'base/usr/lib/x86_64-linux-gnu', name));
  }
  symlinkSync('usr/lib', join(folder, 'base/lib'));
  // Absolute, to somewhere in the base: on this machine there is nothing.
  copyFileSync(loader, join(folder, 'base/usr/lib/x86_64-linux-gnu/the-loader'));
  mkdirSync(dirname(join(folder, 'base', loader)), { recursive: true });
  symlinkSync('/lib/x86_64-linux-gnu/the-loader', join(folder, 'base', loader));
  put('base/bin/sh', 'a shell', 0o755);
  put('base/etc/os-release', 'ID=debian\n');
  put('base/var/lib/dpkg/status', 'Package: other\nVersion: 1\n\nPackage: libc6\nVersion: 2.36\n\n');
  put('base/var/lib/dpkg/info/libc6:amd64.list', `/.\n/lib/x86_64-linux-gnu/${libraries[0]}\n`);
  put('base/var/lib/dpkg/info/other.list', '/bin/sh\n');
  put('base/usr/share/doc/libc6/copyright', 'LGPL');
  for (const name of ['argocd-agent', 'argocd-agentctl', 'gitops-controller']) {
    put(`dist/bin/${name}.js`, '#!/usr/bin/env node\nrun();\n', 0o700);
  }
  layOutRoot({ base: join(folder, 'base'), dist: join(folder, 'dist'), root: join(folder, 'root') });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the image has the program, its loader and its libraries, and no shell', () => {
  const { loader = '', libraries } = needsOf(readFileSync('/bin/true'));
  expect(readFileSync(root('usr/local/bin/node')).equals(readFileSync('/bin/true'))).toBe(true);
  expect(readFileSync(root(loader)).equals(readFileSync(loader))).toBe(true);
  expect(libraries.filter((name) => statSync(root(`lib/x86_64-linux-gnu/${name}`)).size === 0)).toEqual([]);
  expect(readdirSync(root('bin'))).toEqual(['argocd-agent']);
});

test('the programs are started by the Node.js of the image', () => {
  expect(readlinkSync(root('manager'))).toBe('/opt/argocd-fleet/bin/gitops-controller.js');
  expect(readFileSync(root('opt/argocd-fleet/bin/argocd-agent.js'), 'utf8')).toBe('#!/usr/local/bin/node\nrun();\n');
});

test('rights do not depend on those of the sources', () => {
  const rights = (path: string) => (statSync(root(path)).mode & 0o7777).toString(8);
  expect(['tmp', 'opt', 'opt/argocd-fleet/bin/argocd-agent.js', 'etc/passwd'].map(rights)).toEqual([
    ...['1777', '755', '755', '644'],
  ]);
});

test('scanners find the packages of what is there', () => {
  expect(readdirSync(root('var/lib/dpkg/status.d'))).toEqual(['libc6']);
  expect(readFileSync(root('var/lib/dpkg/status.d/libc6'), 'utf8')).toBe('Package: libc6\nVersion: 2.36\n');
  expect(readFileSync(root('usr/share/doc/libc6/copyright'), 'utf8')).toBe('LGPL');
});

test('a library that is missing is named', () => {
  const { libraries } = needsOf(readFileSync('/bin/true'));
  rmSync(join(folder, 'base/usr/lib/x86_64-linux-gnu', libraries[0] ?? ''));
  const attempt = () =>
    layOutRoot({ base: join(folder, 'base'), dist: join(folder, 'dist'), root: join(folder, 'other') });
  expect(attempt).toThrow(`the base image has no ${libraries[0]}`);
});

test.each(['little', 'big'])('what a program needs is read in %s-endian files, too', (order) => {
  const file = Buffer.alloc(0x200);
  const little = order === 'little';
  const view = new DataView(file.buffer, file.byteOffset);
  const word = (at: number, value: number) => view.setBigUint64(at, BigInt(value), little);
  file.write('\x7fELF\x02', 'latin1');
  file[5] = little ? 1 : 2;
  word(0x20, 0x40);
  view.setUint16(0x36, 56, little);
  view.setUint16(0x38, 3, little);
  const segments = [
    { kind: 1, offset: 0x100, address: 0x8100, length: 0x100 },
    { kind: 2, offset: 0x180, address: 0x8180, length: 0x40 },
    { kind: 3, offset: 0x120, address: 0x8120, length: 0x10 },
  ];
  for (const [index, { kind, offset, address, length }] of segments.entries()) {
    const at = 0x40 + index * 56;
    view.setUint32(at, kind, little);
    word(at + 8, offset);
    word(at + 16, address);
    word(at + 32, length);
  }
  file.write('\0libc.so.6\0', 0x100);
  file.write('/lib/ld.so\0', 0x120);
  const entries = [
    [5, 0x8100],
    [1, 1],
    [0, 0],
  ];
  for (const [index, [tag = 0, value = 0]] of entries.entries()) {
    word(0x180 + index * 16, tag);
    word(0x188 + index * 16, value);
  }
  expect(needsOf(file)).toEqual({ loader: '/lib/ld.so', libraries: ['libc.so.6'] });
  expect(() => needsOf(Buffer.from('#!/bin/sh\n'))).toThrow('not an ELF file of 64 bits');
});
