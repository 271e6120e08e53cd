import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type ToolName, toolNames } from './catalogue.ts';
import type { PublishedFile } from './download.ts';
import { ToolError } from './error.ts';

/** A program as its project has released it for this platform. */
export interface ReleasedProgram {
  readonly version: string;
  readonly file: PublishedFile;
  /** The program's name in the archive; none when the file is the program. */
  readonly member?: string | undefined;
}

const platforms = ['linux-amd64', 'linux-arm64'] as const;
/** A platform that files are pinned for. */
export type Platform = (typeof platforms)[number];

const pinnedFile = z.strictObject({
  url: z.url({ protocol: /^https$/ }),
  member: z.string().min(1).optional(),
  sha256: z.hex().length(64),
  /** The project's file that says so. */
  published: z.url({ protocol: /^https$/ }),
  bytes: z.int().positive().optional(),
});

const pinned = z.strictObject({
  version: z.string().regex(/^v\d+\.\d+\.\d+$/),
  files: z.record(z.enum(platforms), pinnedFile),
});

const allPinned = z.partialRecord(z.enum(toolNames as [ToolName, ...ToolName[]]), pinned);

/** What is downloaded: of each program one version, with a checksum for each platform. */
export type PinnedReleases = z.infer<typeof allPinned>;

/** The pins of this repository. */
export const pinsFile = join(import.meta.dirname, 'releases.json');

/** @throws ToolError for a file that cannot be read, or that names the field which is wrong */
export function readPins(path: string): PinnedReleases {
  const pins = allPinned.safeParse(readJson(path));
  if (!pins.success) {
    throw new ToolError('WrongSetting', `${path}: ${z.prettifyError(pins.error)}`);
  }
  return pins.data;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ToolError('WrongSetting', `${path}: ${(error as Error).message}`);
  }
}

/**
 * The released program that stands for a tool here, from the mirror that `TOOLS_MIRROR` names, if it does; undefined where
 * there is none, and with `TOOLS_DOWNLOAD=0`. `TOOLS_RELEASES` names another file of pins.
 * @throws ToolError for a variable or file that is wrong
 */
export function releasedProgram(name: ToolName): ReleasedProgram | undefined {
  const { TOOLS_DOWNLOAD = '', TOOLS_RELEASES } = process.env;
  if (!['', '0', '1'].includes(TOOLS_DOWNLOAD)) {
    throw new ToolError('WrongSetting', `TOOLS_DOWNLOAD=${TOOLS_DOWNLOAD}: 0 builds every tool; otherwise unset it`);
  }
  const release = TOOLS_DOWNLOAD === '0' ? undefined : readPins(TOOLS_RELEASES || pinsFile)[name];
  const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch as string];
  const file = release?.files[`${process.platform}-${architecture}` as Platform];
  if (!release || !file) {
    return undefined;
  }
  const { member, url, ...check } = file;
  return {
    version: release.version,
    member,
    file: { ...check, url: onMirror(url, process.env.TOOLS_MIRROR || undefined) },
  };
}

/**
 * Where a file is on a mirror, if there is one: `https://example.org/a/b` is `<mirror>/example.org/a/b`.
 * @throws ToolError for a mirror that is no URL
 */
export function onMirror(url: string, mirror: string | undefined): string {
  if (mirror === undefined) {
    return url;
  }
  if (!/^https?:\/\/[^?#@]+$/.test(mirror) || !URL.canParse(mirror)) {
    throw new ToolError('WrongSetting', 'The mirror (TOOLS_MIRROR) is not a URL such as https://mirror.example/tools');
  }
  return `${mirror.replace(/\/+$/, '')}/${url.slice('https://'.length)}`;
}
