/* Renews the pins of releases.json from the checksums that the projects publish. */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { buildOf } from './build.ts';
import { latestVersion, projects, publishedRelease, type ReleasedName } from './projects.ts';
import { type PinnedReleases, pinsFile, readPins } from './releases.ts';

const names = Object.keys(projects) as ReleasedName[];
const usage = `Usage: npm run tools:renew [-- OPTIONS] [NAME=VERSION ...]

Reads the checksums that the projects publish, and writes them and the sizes of the files into e2e/tools/releases.json.
Without NAME=VERSION for every program, in the version that the Go modules build if that is newer than the pinned one.
NAME is one of ${names.join(', ')}; VERSION is one such as v1.36.3, or latest.
If a project now publishes another checksum for a version that is pinned, nothing is written.

  --mirror URL   reads from a mirror, as TOOLS_MIRROR has it: the checksums are then as good as the mirror
  --file FILE    another file of pins
`;

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\nNothing was written.\n`);
  process.exitCode = 1;
}

async function main(): Promise<number> {
  const { values, positionals } = parse();
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const pins = readPins(values.file);
  const wanted = positionals.length > 0 ? positionals.map(parseWish) : names.map((name) => modulesWish(name, pins));
  const renewed = await Promise.all(
    wanted.map(async ([name, wish]) => {
      const version = wish === 'latest' ? await latestVersion(name, values.mirror) : wish;
      return [name, await publishedRelease(name, version, values.mirror)] as const;
    }),
  );
  for (const [name, release] of renewed) {
    process.stdout.write(`${name}: ${changeOf(name, pins[name], release)}\n`);
    pins[name] = release;
  }
  await writeFile(values.file, `${JSON.stringify(pins, null, 2)}\n`);
  return 0;
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        mirror: { type: 'string' },
        file: { type: 'string', default: pinsFile },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n\n${usage}`);
  }
}

function parseWish(argument: string): [ReleasedName, string] {
  const [name = '', version = '', ...rest] = argument.split('=');
  if (!names.includes(name as ReleasedName) || !/^(latest|v\d+\.\d+\.\d+)$/.test(version) || rest.length > 0) {
    throw new Error(`${argument} is not NAME=VERSION.\n\n${usage}`);
  }
  return [name as ReleasedName, version];
}

/** The version that the Go modules build; the pinned one where that is newer. */
function modulesWish(name: ReleasedName, pins: PinnedReleases): [ReleasedName, string] {
  // kubectl's own module here is not versioned, and is one release with the others of Kubernetes.
  const built = buildOf(name).version || buildOf('kube-apiserver').version;
  const pinned = pins[name]?.version ?? built;
  return [name, built.localeCompare(pinned, 'en', { numeric: true }) > 0 ? built : pinned];
}

type Pinned = NonNullable<PinnedReleases[ReleasedName]>;

/** @throws Error when a release is not what it was */
function changeOf(name: ReleasedName, before: Pinned | undefined, now: Pinned): string {
  if (before?.version !== now.version) {
    return `${before?.version ?? 'not pinned'} -> ${now.version}`;
  }
  for (const platform of ['linux-amd64', 'linux-arm64'] as const) {
    const [pinned, published] = [before.files[platform].sha256, now.files[platform].sha256];
    if (pinned !== published) {
      throw new Error(
        `${name} ${now.version} for ${platform}: ${published} is published, and ${pinned} was pinned. ` +
          'A release does not change: find out why before you trust either.',
      );
    }
  }
  return `${now.version} is as it was`;
}
