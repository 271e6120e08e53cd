import { expect, it } from 'vitest';
import { projects, type ReleasedName } from './projects.ts';
import { pinsFile, readPins } from './releases.ts';

const pins = readPins(pinsFile);

it.each(Object.keys(projects) as ReleasedName[])('pins the files of %s that its project publishes', (name) => {
  const { version = '', files } = pins[name] ?? {};
  const project: (typeof projects)[ReleasedName] & { member?(version: string, architecture: string): string } =
    projects[name];
  for (const architecture of ['amd64', 'arm64'] as const) {
    const { url, member, published } = files?.[`linux-${architecture}`] ?? {};
    expect({ url, member, published }).toEqual({
      url: project.url(version, architecture),
      member: project.member?.(version, architecture),
      published: project.checksums(version, architecture),
    });
  }
});

it('pins another file for each platform and program', () => {
  const checksums = Object.values(pins).flatMap(({ files }) => Object.values(files).map(({ sha256 }) => sha256));
  expect(new Set(checksums).size).toBe(2 * Object.keys(projects).length);
});
