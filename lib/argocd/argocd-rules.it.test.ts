import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../e2e/oracle/index.ts';
import type { Random } from '../../e2e/random/index.ts';
import { isEqual } from '../base/index.ts';
import { isProjectForAgent, projectForAgent } from './app-project-rules.ts';
import type { AppProject, Destination } from './application.ts';
import { isGlob, matchesAny, matchesGlob, unreadableEntries } from './glob.ts';
import { matchesSelector, parseGlobalProjects } from './global-projects.ts';
import { impersonatedUser } from './impersonation.ts';
import { inCluster } from './project-clusters.ts';
import { permitsDestination, permitsSource } from './project-permissions.ts';
import { projectScope } from './project-surroundings.ts';
import { normalRepositoryUrl } from './repository-use.ts';
import { virtualProject } from './virtual-project.ts';

// Beside Argo CD's own functions. What differs on purpose is in docs/synchronisation.md.

const some = <T>(dice: Random, most: number, make: () => T): T[] => Array.from({ length: dice.integer(0, most) }, make);
const text = (dice: Random, characters: string, most: number) =>
  some(dice, most, () => dice.pick([...characters])).join('');
const isError = (answer: unknown) => typeof answer === 'object' && answer !== null && 'error' in answer;

const clusters = [
  { name: 'prod', server: 'https://proxy:9090?agentName=prod' },
  { name: 'prod-2', server: 'https://10.0.0.2' },
  { name: 'test', server: 'https://10.0.0.3:6443' },
];
const namespaces = ['a', 'b', 'team-a', 'team-b', ''];
const words = ['a', 'b', 'team-a', '*', '**', 'team-*', '?*', '{a,b}', '[ab]', '[a-b]', 'team-[!a]'];
const names = [...clusters.map(({ name }) => name), '*', 'prod*', 'p[r]od', '{prod,test}', 'in-cluster', ''];
const servers = [...clusters.map(({ server }) => server), '*', 'https://*', 'https://10.0.0.?', inCluster.server, ''];
const denied = (dice: Random, pattern: string) => (dice.chance(0.2) && pattern !== '' ? `!${pattern}` : pattern);

function destinations(dice: Random): Destination[] {
  return some(dice, 4, () => {
    const shape = dice.integer(0, 2);
    return {
      ...(shape === 1 ? {} : { name: denied(dice, dice.pick(names)) }),
      ...(shape === 0 ? {} : { server: denied(dice, dice.pick(servers)) }),
      namespace: denied(dice, dice.pick(words)),
    };
  });
}

const projectOf = (spec: AppProject['spec']): AppProject => ({ metadata: { name: 'p' }, spec });

test(
  'which destinations a project permits',
  async () => {
    const differs = await compareWithArgoCD('destination', (dice) => {
      const spec = { destinations: destinations(dice) };
      const destination = { ...dice.pick(clusters), namespace: dice.pick(namespaces) };
      return { of: { project: 'p', spec, ...destination }, ours: permitsDestination(projectOf(spec), destination) };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'an agent has a project that permits on its cluster what the hub permits there, by its own clusters too',
  async () => {
    const differs = await compareWithArgoCD('destination', (dice) => {
      const cluster = dice.pick(clusters);
      const spec = {
        destinations: destinations(dice),
        ...(dice.chance(0.3) ? { permitOnlyProjectScopedClusters: dice.chance(0.5) } : {}),
      };
      const scoped = some(dice, 1, () => dice.pick(clusters));
      const target = {
        agent: cluster.name,
        clusters: [cluster],
        projects: scoped.some(({ name }) => name === cluster.name) ? ['p'] : [],
      };
      const namespace = dice.pick(namespaces);
      const isFor = isProjectForAgent(projectOf(spec), target, 'destination');
      const copy = projectForAgent(projectOf(spec), target, 'destination');
      return {
        of: { project: 'p', spec, ...cluster, namespace, scoped },
        ours: isFor && permitsDestination(copy, { ...inCluster, namespace }),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'a copy decides in the Argo CD of its cluster as the hub says, and permits no other cluster',
  async () => {
    const differs = await compareWithArgoCD('destination', (dice) => {
      const cluster = dice.pick(clusters);
      const hub = projectOf({ destinations: destinations(dice) });
      const target = { agent: cluster.name, clusters: [cluster] };
      const isFor = isProjectForAgent(hub, target, 'destination');
      const { spec } = projectForAgent(hub, target, 'destination');
      const namespace = dice.pick(namespaces);
      const isHere = dice.chance(0.8);
      const place = isHere ? inCluster : { name: 'other', server: 'https://other' };
      return {
        of: { project: 'p', spec: isFor ? spec : {}, ...place, namespace },
        ours: isHere && permitsDestination(hub, { ...cluster, namespace }),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'which sync windows apply on the cluster: those of the hub',
  async () => {
    // Schedules and time zones are passed on as they are: Argo CD alone evaluates them.
    const differs = await compareWithArgoCD('windows', (dice) => {
      const cluster = dice.pick(clusters);
      const patterns = () => dice.pick([...names, ...servers]);
      const windows = some(dice, 4, () => ({
        kind: dice.pick(['allow', 'deny']),
        schedule: `${dice.integer(0, 59)} ${dice.integer(0, 23)} * * *`,
        duration: '1h',
        timeZone: dice.pick(['UTC', 'Europe/Berlin', 'America/New_York', '']),
        ...(dice.chance(0.5) ? { applications: some(dice, 2, () => dice.pick(words)) } : {}),
        ...(dice.chance(0.7) ? { clusters: some(dice, 2, patterns) } : {}),
        ...(dice.chance(0.5) ? { namespaces: some(dice, 2, () => dice.pick(words)) } : {}),
        ...(dice.chance(0.5) ? { andOperator: dice.chance(0.7) } : {}),
      }));
      const target = { agent: cluster.name, clusters: [cluster] };
      const local = projectForAgent(projectOf({ syncWindows: windows }), target, 'destination').spec.syncWindows ?? [];
      const [name, namespace] = [dice.pick(['a', 'b', 'team-a']), dice.pick(namespaces)];
      const idOf = (window: object) => {
        const { clusters: _, ...rest } = window as { clusters?: unknown };
        return JSON.stringify(rest);
      };
      const both = [...windows, ...local];
      return {
        // The hub's windows for the hub's Application, and the copy's for the copy: asked as one list of two halves.
        of: {
          windows: both.map((window, at) => (at < windows.length ? window : { ...window, description: 'copy' })),
          name,
          destination: { ...cluster, namespace },
        },
        ours: undefined,
        agrees: (theirs) => {
          if (!Array.isArray(theirs)) {
            return false;
          }
          const onHub = theirs
            .filter((at: number) => at < windows.length)
            .map((at: number) => idOf(both[at] as object));
          const kept = new Set(local.map(idOf));
          return onHub.every((id) => kept.has(id));
        },
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'sync windows are open on the cluster when they are on the hub, in every time zone',
  async () => {
    const zones = [...Intl.supportedValuesOf('timeZone'), 'Nowhere/Else'];
    const differs = await compareWithArgoCD('windowsAt', (dice) => {
      const cluster = dice.pick(clusters);
      const windows = some(dice, 4, () => ({
        kind: dice.pick(['allow', 'deny']),
        schedule: `${dice.integer(0, 59)} ${dice.pick(['*', '1', '2', '*/3', '23'])} ${dice.pick(['*', '1', '29'])} * ${dice.pick(['*', '0'])}`,
        duration: dice.pick(['1h', '90m', '24h', '1s', '1 h']),
        ...(dice.chance(0.8) ? { timeZone: dice.pick(zones) } : {}),
        ...(dice.chance(0.3) ? { manualSync: true } : {}),
        ...(dice.chance(0.5) ? { applications: some(dice, 2, () => dice.pick(words)) } : {}),
        ...(dice.chance(0.7) ? { clusters: some(dice, 2, () => dice.pick([...names, ...servers])) } : {}),
        ...(dice.chance(0.5) ? { namespaces: some(dice, 2, () => dice.pick(words)) } : {}),
        ...(dice.chance(0.5) ? { andOperator: dice.chance(0.7) } : {}),
      }));
      const target = { agent: cluster.name, clusters: [cluster] };
      const local = projectForAgent(projectOf({ syncWindows: windows }), target, 'destination').spec.syncWindows;
      // About the hours at which clocks change in Europe and America, and others.
      const day = dice.pick(['2026-03-08', '2026-03-29', '2026-10-25', '2026-11-01', '2028-02-29', '2026-12-31']);
      const now = new Date(Date.parse(day) + dice.integer(0, 48 * 3_600) * 1_000).toISOString();
      const namespace = dice.pick(namespaces);
      const sides = [
        { windows, destination: { ...cluster, namespace } },
        { windows: local, destination: { ...inCluster, namespace } },
      ];
      return {
        of: { name: dice.pick(['a', 'b', 'team-a']), now, sides },
        ours: 'the same on both sides',
        agrees: (theirs) => Array.isArray(theirs) && canonical(theirs[0]) === canonical(theirs[1]),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'whom Argo CD impersonates',
  async () => {
    const accounts = [
      'deployer',
      'ops:deployer',
      ' ',
      '',
      '!a',
      'a*',
      'a/b',
      'a\\b',
      ':',
      'a:b:c',
      ' deployer',
      '\t',
      '{a}',
    ];
    const patterns = [
      '*',
      '',
      inCluster.server,
      'https://*',
      'https://10.0.0.?',
      '[',
      '!*',
      'https://{kubernetes,other}.*',
    ];
    const differs = await compareWithArgoCD('impersonate', (dice) => {
      const destinationServiceAccounts = some(dice, 4, () => ({
        server: dice.pick(patterns),
        namespace: dice.pick([...words, '', '[', '!a']),
        defaultServiceAccount: dice.pick(accounts),
      }));
      const spec = { destinations: [{ server: '*', namespace: '*' }], destinationServiceAccounts };
      const namespace = dice.pick(namespaces);
      const application = {
        metadata: { name: 'web', namespace: 'argocd' },
        spec: { project: 'p', destination: { name: inCluster.name, namespace } },
      };
      const ours = impersonatedUser(application, projectOf(spec), 'argocd');
      return {
        of: { spec, application, server: inCluster.server },
        ours,
        agrees: (theirs) => (isError(theirs) ? ours === undefined : theirs === ours),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'specs that count as equal are equal to Argo CD, and others differ in more than what is empty',
  async () => {
    const differs = await compareWithArgoCD('specs', (dice) => {
      const maybe = <T>(field: string, make: () => T) => (dice.chance(0.5) ? { [field]: make() } : {});
      const word = () => dice.pick(['', 'a', 'A', 'a ', '1', 'é', 'e\u0301']);
      const source = () => ({
        repoURL: word(),
        ...maybe('targetRevision', word),
        ...maybe('helm', () => ({
          ...maybe('values', word),
          ...maybe('valueFiles', () => some(dice, 2, word)),
          ...maybe('parameters', () =>
            some(dice, 2, () => ({ name: word(), value: word(), forceString: dice.chance(0.5) })),
          ),
          ...maybe('valuesObject', () => ({ a: dice.pick([1, 1.5, '1', null, true]) })),
        })),
        ...maybe('directory', () => ({ ...maybe('recurse', () => dice.chance(0.5)), ...maybe('jsonnet', () => ({})) })),
      });
      const fields: Record<string, () => unknown> = {
        project: word,
        destination: () => ({ ...maybe('name', word), ...maybe('namespace', word), ...maybe('server', word) }),
        source,
        sources: () => some(dice, 2, source),
        info: () => some(dice, 2, () => ({ name: word(), value: word() })),
        revisionHistoryLimit: () => dice.integer(0, 1),
        syncPolicy: () => ({
          ...maybe('automated', () => maybe('prune', () => dice.chance(0.5))),
          ...maybe('syncOptions', () => some(dice, 2, word)),
        }),
      };
      const spec = () =>
        Object.fromEntries(
          Object.entries(fields)
            .filter(() => dice.chance(0.5))
            .map(([field, make]) => [field, make()]),
        );
      const one = spec();
      const changed = dice.pick(Object.keys(fields));
      // In another order, and often with one field that is another.
      const other: Record<string, unknown> = Object.fromEntries(dice.shuffle(Object.entries(structuredClone(one))));
      if (dice.chance(0.7)) {
        other[changed] = fields[changed]?.();
      }
      const ours = isEqual(one, other);
      return {
        of: { one, other },
        ours,
        agrees: (theirs) => theirs === ours || (theirs === true && withoutEmpty(one) === withoutEmpty(other)),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

/** What Go takes for the same: an absent field and an empty one. */
const withoutEmpty = (value: unknown): string => JSON.stringify(filled(value)) ?? '';

function filled(value: unknown): unknown {
  if (value === null || typeof value !== 'object') {
    return value === '' || value === false ? undefined : value;
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? undefined : value.map((item) => filled(item) ?? {});
  }
  const fields = Object.entries(value)
    .map(([field, item]) => [field, filled(item)] as const)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

test(
  'which sources a project permits',
  async () => {
    const urls = [
      'https://git.example.com/a/b',
      'git@git.example.com:a/b.git',
      'ssh://git@git.example.com/a/b',
      'oci://r/c',
    ];
    const patterns = [
      ...urls,
      '*',
      'https://git.example.com/*',
      'https://git.example.com/**',
      '*/a/b',
      'https://*.com/a/?',
    ];
    const differs = await compareWithArgoCD('source', (dice) => {
      const sourceRepos = some(dice, 4, () => denied(dice, dice.pick(patterns))).filter((one) => one !== '!*');
      const url = dice.pick([...urls, 'https://GIT.example.com/a/b.git', 'https://git.example.com/a/b/c']);
      return { of: { sourceRepos, url }, ours: permitsSource(projectOf({ sourceRepos }), url) };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'the normal form of a repository address',
  async () => {
    const differs = await compareWithArgoCD('repository', (dice) => {
      const [scheme, user] = [dice.pick(['https://', 'ssh://', 'oci://', '']), dice.pick(['git@', 'User@', ''])];
      const host = `${dice.pick(['host', 'HOST.example.com'])}${dice.pick(['', ':', ':22'])}`;
      const path = some(dice, 4, () => dice.pick(['a', 'B', '.git', '22', '-', '/'])).join('');
      const url = `${scheme}${user}${host}/a${path}`;
      const ours = normalRepositoryUrl(url);
      // To Argo CD, an address that is no URL is none.
      return { of: { url }, ours, agrees: (theirs) => theirs === ours || theirs === '' };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'which addresses are the same repository',
  async () => {
    const differs = await compareWithArgoCD('same', (dice) => {
      const address = () =>
        dice.pick(['https://', 'HTTPS://', 'ssh://', 'http://', 'git://', 'oci://', '']) +
        dice.pick(['git@', 'User:pass@', 'org-1@', '', '']) +
        dice.pick(['host', 'HOST', 'host.', '[::1]', '10.0.0.1']) +
        dice.pick(['/', ':', ':22/', ':22:', '/:']) +
        some(dice, 3, () => dice.pick(['a', 'A', '.git', '/', '~b', '_git', '.GIT', 'a+b', 'a-b', ':'])).join('') +
        dice.pick(['', '', '.git', '/', '?ref=A', '#a', '.git/']);
      const blank = () => dice.pick(['', '', '', ' ', '\n']);
      const one = address();
      const changes = [
        (url: string) => url,
        (url: string) => url.toUpperCase(),
        (url: string) => `${url}.git`,
        (url: string) => url.replace('ssh://', ''),
        (url: string) => `ssh://${url}`,
        (url: string) => url.replace(':', '/'),
        address,
      ];
      const other = `${blank()}${dice.pick(changes)(one)}${blank()}`;
      const ours = normalRepositoryUrl(one) === normalRepositoryUrl(other);
      return { of: { one, other }, ours, agrees: (theirs) => theirs === null || theirs === ours };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'globs',
  async () => {
    const differs = await compareWithArgoCD('glob', (dice) => {
      const pattern = text(dice, 'ab-*?[]!{},\\/', 8);
      const word = text(dice, 'ab-!]/', 5);
      const separator = dice.chance(0.3) ? '/' : '';
      const ours = matchesGlob(pattern, word, separator || undefined);
      return {
        of: { pattern, text: word, separator },
        ours: isGlob(pattern) ? ours : 'no glob',
        // Quirks of gobwas/glob, each of which permits less here than what is written.
        agrees: (theirs) => (isError(theirs) ? !ours : theirs === ours || isQuirk(pattern, word)),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

/** Where gobwas/glob does not what its documentation says. */
function isQuirk(pattern: string, word: string): boolean {
  return (
    // A pattern for one character that comes to the end of the text matches nothing, too.
    /\?|\[!/.test(pattern) ||
    // A last `\`, braces without an end or a beginning, and empty alternatives.
    /\\$|[{},]/.test(pattern) ||
    (pattern.includes('**') && word.includes('/'))
  );
}

test(
  'expressions',
  async () => {
    const pieces = [
      'a',
      'b',
      'team',
      '-',
      '\\-',
      '\\:',
      '\\_',
      '[a-c]',
      '[^b]',
      '[]a]',
      '.',
      '*',
      '+',
      '?',
      '^',
      '$',
      '(',
      ')',
    ];
    const more = [
      '|',
      '\\A',
      '\\z',
      '\\Z',
      '{2}',
      '{1,2}',
      '{',
      '}',
      ']',
      '(?:',
      '(?=',
      '(?!',
      '(?#x)',
      '\\w',
      '\\d',
      '\\.',
    ];
    const differs = await compareWithArgoCD('list', (dice) => {
      const option = dice.chance(0.1) ? '(?i)' : '';
      const entry = `/${option}${dice.pick(pieces)}${some(dice, 5, () => dice.pick([...pieces, ...more])).join('')}/`;
      const word = text(dice, 'abAc-:_]}{2', 5);
      const ours = matchesAny([entry], word);
      // JavaScript repeats no anchors and no assertions.
      const isBeyond = /(\^|\$|\\[AzZ]|\))[*+?{]/.test(entry) && unreadableEntries([entry]).length > 0;
      return { of: { entries: [entry], text: word }, ours, agrees: (theirs) => theirs === ours || (isBeyond && !ours) };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'what a project inherits from global projects',
  async () => {
    const kinds = ['Pod', 'Secret', '*'];
    const differs = await compareWithArgoCD('virtual', (dice) => {
      const spec = () => ({
        ...(dice.chance(0.5) ? { sourceRepos: some(dice, 2, () => dice.pick(['*', 'https://a', 'https://b'])) } : {}),
        ...(dice.chance(0.5) ? { destinations: destinations(dice) } : {}),
        ...Object.fromEntries(
          [
            'clusterResourceWhitelist',
            'clusterResourceBlacklist',
            'namespaceResourceWhitelist',
            'namespaceResourceBlacklist',
          ]
            .filter(() => dice.chance(0.5))
            .map((field) => [field, some(dice, 2, () => ({ group: '', kind: dice.pick(kinds) }))]),
        ),
        ...(dice.chance(0.5)
          ? { syncWindows: some(dice, 2, () => ({ kind: 'deny', schedule: dice.pick(['a', 'b']) })) }
          : {}),
      });
      const [own, globals] = [spec(), some(dice, 3, spec)];
      const virtual = virtualProject(projectOf(own), {
        globalProjectsFor: () => globals.map(projectOf),
        clustersOf: () => [],
        repositoriesOf: () => [],
      });
      const setOf = (one: object) =>
        Object.entries(one)
          .map(([field, items]) => [field, [...new Set((items as unknown[]).map(canonical))].sort()] as const)
          .filter(([, items]) => items.length > 0)
          .sort(([a], [b]) => (a < b ? -1 : 1));
      return {
        of: { spec: own, globals },
        ours: virtual.spec,
        agrees: (theirs) => canonical(setOf(theirs as object)) === canonical(setOf(virtual.spec)),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

/** JSON without what Go leaves out. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, one) =>
    one !== null && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(
          Object.entries(one)
            .filter(([, item]) => item !== '')
            .sort(),
        )
      : one,
  );

test(
  'whom a project is a global project for',
  async () => {
    const differs = await compareWithArgoCD('globals', (dice) => {
      const key = () => dice.pick(['team', 'kind', 'example.com/a', 'a b', '', '1']);
      const value = () => dice.pick(['a', 'b', '1', '1.5', 'true', 'yes', "'x'", '""', 'a b', 'null']);
      const expression = () => {
        const values = dice.chance(0.7) ? `, values: [${some(dice, 2, value).join(', ')}]` : '';
        return `{key: ${key() || '""'}, operator: ${dice.pick(['In', 'NotIn', 'Exists', 'DoesNotExist', 'in'])}${values}}`;
      };
      const setting = (_: unknown, at: number) => {
        const selector = [
          dice.chance(0.6) ? `matchLabels: {${key() || '""'}: ${value()}}` : '',
          dice.chance(0.4) ? `matchExpressions: [${some(dice, 2, expression).join(', ')}]` : '',
        ];
        const field = dice.pick(['labelSelector', 'labelSelector', 'labelselector', 'selector']);
        return `- projectName: p${at}\n  ${field}: {${selector.filter((one) => one !== '').join(', ')}}\n`;
      };
      const settings = Array.from({ length: dice.integer(0, 3) }, setting).join('');
      const labels = Object.fromEntries(
        some(dice, 2, () => [dice.pick(['team', 'kind', '1']), dice.pick(['a', '1', 'true'])]),
      );
      return {
        of: { text: settings, labels },
        ours: globalNames(settings, labels),
        agrees: (theirs) =>
          isError(theirs)
            ? globalNames(settings, labels) === 'error'
            : canonical(theirs) === canonical(globalNames(settings, labels)),
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

function globalNames(settings: string, labels: Record<string, string>): string[] | 'error' {
  const found: string[] = [];
  try {
    for (const { projectName, labelSelector } of parseGlobalProjects(settings)) {
      const isMatch = matchesSelector(labelSelector, labels);
      if (isMatch === undefined) {
        break;
      }
      if (isMatch) {
        found.push(projectName);
      }
    }
    return found;
  } catch {
    return 'error';
  }
}

test(
  'what is read of a cluster Secret that belongs to a project',
  async () => {
    const differs = await compareWithArgoCD('cluster', (dice) => {
      const base64 = (value: string) => Buffer.from(value).toString('base64');
      const data = {
        ...(dice.chance(0.9) ? { name: base64(dice.pick(['one', '', ' one', 'zwei ü'])) } : {}),
        ...(dice.chance(0.9) ? { server: base64(`${dice.pick(['https://', '', ' '])}${text(dice, 'a/: ?', 4)}`) } : {}),
        project: base64(dice.pick(['p', ' p', 'P'])),
        ...(dice.chance(0.6) ? { namespaces: base64(text(dice, 'ab, \t\n\u00a0', 6)) } : {}),
        ...(dice.chance(0.3) ? { config: base64(dice.pick(['', '{}', '{"tlsClientConfig":{"insecure":true}}'])) } : {}),
        ...(dice.chance(0.2)
          ? { clusterResources: base64(dice.pick(['true', 'x'])), shard: base64(dice.pick(['1', 'x'])) }
          : {}),
      };
      const metadata = { name: 's', labels: { 'argocd.argoproj.io/secret-type': 'cluster' } };
      const { cluster, project } = projectScope({ metadata, data }) ?? {};
      return {
        of: { data },
        ours: { name: cluster?.name, namespaces: cluster?.namespaces, project, server: cluster?.server },
      };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
