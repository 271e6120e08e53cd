import { describe, expect, test } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { effort } from '../base/testing.ts';
import { isProjectForAgent, projectForAgent } from './app-project-rules.ts';
import type { AppProject, Destination, DestinationServiceAccount, SyncWindow } from './application.ts';
import { matchesGlob } from './glob.ts';
import { permitsDestination } from './project-permissions.ts';

const cluster = (agent: string) => ({ name: agent, server: `https://proxy:9090?agentName=${agent}` });
const target = (agent: string) => ({ agent, clusters: [cluster(agent)] });
const project = (spec: AppProject['spec']): AppProject => ({ metadata: { name: 'p' }, spec });
const specFor = (agent: string, spec: AppProject['spec']) =>
  projectForAgent(project(spec), target(agent), 'destination').spec;

describe('a destination that denies by its server', () => {
  const isFor = (agent: string, ...destinations: Destination[]) =>
    isProjectForAgent(project({ destinations }), target(agent), 'destination');

  test.each([
    '!https://proxy:9090?agentName=prod',
    '!https://elsewhere?agentName=pr*',
    '!https://proxy:9090*',
    '!https://*=prod',
  ])('%s keeps the project from the agent', (server) => {
    expect(isFor('prod', { server: '*', namespace: '*' }, { server, namespace: '*' })).toBe(false);
    expect(isFor('prod', { name: '*', namespace: '*' }, { server })).toBe(false);
  });

  test('concerns this agent alone', () => {
    const server = '!https://proxy:9090?agentName=prod';
    expect(isFor('test', { server: '*', namespace: '*' }, { server, namespace: '*' })).toBe(true);
  });

  test("also by the server in the cluster's Secret, and by the cluster's name in it", () => {
    const one = { agent: 'one', clusters: [{ name: 'uno', server: 'https://10.0.0.1' }] };
    const denying = (destination: Destination) =>
      isProjectForAgent(project({ destinations: [{ server: '*' }, destination] }), one, 'destination');
    expect(denying({ server: '!https://10.0.0.*', namespace: '*' })).toBe(false);
    expect(denying({ name: '!uno' })).toBe(false);
    expect(denying({ server: '!https://10.0.1.*', namespace: '*' })).toBe(true);
  });

  test('denies its namespace alone on the cluster, and permits nothing', () => {
    const { destinations } = specFor('prod', {
      destinations: [
        { server: '*', namespace: 'team-*' },
        { server: '!https://proxy:9090?agentName=prod', namespace: 'team-secret' },
      ],
    });
    const local = { destinations } as AppProject['spec'];
    const permits = (name: string, server: string, namespace: string) =>
      permitsDestination(project(local), { name, server, namespace });
    expect(permits('in-cluster', 'https://kubernetes.default.svc', 'team-a')).toBe(true);
    expect(permits('in-cluster', 'https://kubernetes.default.svc', 'team-secret')).toBe(false);
    expect(permits('other', 'https://other', 'team-secret')).toBe(false);
  });
});

describe('what Argo CD means by a destination', () => {
  const url = cluster('prod').server;
  const permits = (destinations: Destination[], namespace: string) => {
    const hub = project({ destinations });
    const isFor = isProjectForAgent(hub, target('prod'), 'destination');
    const local = projectForAgent(hub, target('prod'), 'destination');
    const here = { name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace };
    const onCluster = isFor && permitsDestination(local, here);
    expect(onCluster).toBe(permitsDestination(hub, { name: 'prod', server: url, namespace }));
    return onCluster;
  };

  test('a namespace that is denied by an entry with the name of another cluster and a server of this one', () => {
    const all = { name: '*', namespace: '*' };
    expect(permits([{ name: 'x', server: '*', namespace: '!a' }, all], 'a')).toBe(false);
    expect(permits([{ name: 'x', server: '*', namespace: '!a' }, all], 'b')).toBe(true);
    expect(permits([{ name: 'x', server: '*', namespace: '*' }], 'a')).toBe(true);
  });

  test('a negated server means all others, with the namespaces that are denied there', () => {
    const all = { name: '*', namespace: '*' };
    expect(permits([all, { server: '!https://c2', namespace: '!b' }], 'b')).toBe(false);
    expect(permits([all, { server: '!https://c2', namespace: '!b' }], 'a')).toBe(true);
    expect(permits([{ server: '!https://c2', namespace: 'a' }], 'a')).toBe(true);
    expect(permits([{ name: '!test', namespace: 'a' }], 'a')).toBe(true);
  });

  test('a namespace that is denied by a name alone only is not permitted', () => {
    expect(permits([{ name: 'prod', namespace: '!a' }], 'a')).toBe(false);
    expect(
      permits(
        [
          { name: 'prod', namespace: '!a' },
          { name: 'prod', namespace: 'a' },
        ],
        'a',
      ),
    ).toBe(true);
  });

  test('an entry that denies by its name permits by its server', () => {
    expect(permits([{ name: '!prod', server: '*', namespace: 'a' }], 'a')).toBe(true);
    expect(
      permits(
        [
          { server: '*', namespace: '*' },
          { name: '!prod', server: '*', namespace: 'a' },
        ],
        'b',
      ),
    ).toBe(false);
  });
});

describe('permitOnlyProjectScopedClusters', () => {
  const scoped = project({ destinations: [{ name: '*', namespace: '*' }], permitOnlyProjectScopedClusters: true });

  test('gives the project to the agents of its own clusters alone', () => {
    expect(isProjectForAgent(scoped, target('prod'), 'destination')).toBe(false);
    expect(isProjectForAgent(scoped, { ...target('prod'), projects: ['q'] }, 'destination')).toBe(false);
    expect(isProjectForAgent(scoped, { ...target('prod'), projects: ['p'] }, 'destination')).toBe(true);
  });

  test('stays on the hub: no cluster Secret of the cluster names the project', () => {
    const copy = projectForAgent(scoped, { ...target('prod'), projects: ['p'] }, 'destination');
    expect(copy.spec).not.toHaveProperty('permitOnlyProjectScopedClusters');
  });
});

describe('sync windows', () => {
  const window = (fields: SyncWindow): SyncWindow => ({
    kind: 'deny',
    schedule: '0 0 * * *',
    duration: '1h',
    ...fields,
  });
  const translated = (fields: SyncWindow) => specFor('prod', { syncWindows: [window(fields)] }).syncWindows;

  test.each(['prod', 'pr*', '*', 'https://proxy:9090?agentName=prod', 'https://proxy:9090*'])(
    'for cluster %s apply on the cluster',
    (pattern) => {
      expect(translated({ clusters: ['other', pattern] })).toEqual([window({ clusters: ['in-cluster'] })]);
    },
  );

  test("for other clusters, or for the hub's own, apply to what else they name", () => {
    expect(translated({ clusters: ['other'] })).toEqual([]);
    expect(translated({ clusters: ['in-cluster', 'https://kubernetes.default.svc'] })).toEqual([]);
    expect(translated({ clusters: ['other'], applications: ['a'] })).toEqual([window({ applications: ['a'] })]);
    expect(translated({ clusters: ['other'], applications: ['a'], andOperator: true })).toEqual([]);
    expect(translated({ applications: ['a'], clusters: [] })).toEqual([window({ applications: ['a'], clusters: [] })]);
  });
});

test('service accounts are those of the cluster, in their order, each once', () => {
  const account = (server: string, defaultServiceAccount: string, namespace = 'n') => ({
    server,
    namespace,
    defaultServiceAccount,
  });
  const accounts = [
    account('https://proxy:9090?agentName=other', 'other'),
    account('https://proxy:9090?agentName=prod', 'first'),
    account('*', 'second'),
    account('*', 'third', 'm'),
    account('https://kubernetes.default.svc', 'hub'),
    account('[', 'invalid'),
  ];
  expect(specFor('prod', { destinationServiceAccounts: accounts }).destinationServiceAccounts).toEqual([
    account('https://kubernetes.default.svc', 'first'),
    account('https://kubernetes.default.svc', 'third', 'm'),
    account('[', 'invalid'),
  ]);
});

// Argo CD's own rules, after its source (pkg/apis/application/v1alpha1/types.go, util/settings/impersonation.go).

interface App {
  readonly name: string;
  readonly destination: Required<Pick<Destination, 'name' | 'server' | 'namespace'>>;
}

function windowMatches(window: SyncWindow, { name, destination }: App): boolean {
  const { applications = [], clusters = [], namespaces = [], andOperator = false } = window;
  let matched = false;
  let isSet = false;
  if (applications.length > 0) {
    isSet = true;
    matched = applications.some((one) => matchesGlob(one, name));
  }
  if (andOperator && !matched && isSet) {
    return false;
  }
  if (!andOperator && matched) {
    return true;
  }
  if (clusters.length > 0) {
    isSet = true;
    matched = clusters.some(
      (one) =>
        (destination.name !== '' && matchesGlob(one, destination.name)) ||
        (destination.server !== '' && matchesGlob(one, destination.server)),
    );
  }
  if (isSet && andOperator && !matched) {
    return false;
  }
  if (!andOperator && matched) {
    return true;
  }
  return namespaces.length > 0 ? namespaces.some((one) => matchesGlob(one, destination.namespace)) : matched;
}

function accountFor(accounts: readonly DestinationServiceAccount[], { destination }: App): unknown {
  const found = accounts.find(
    ({ server, namespace = '' }) =>
      matchesGlob(server, destination.server) && matchesGlob(namespace, destination.namespace),
  );
  return found?.defaultServiceAccount;
}

test('for random projects, Argo CD decides on the cluster as it would on the hub', () => {
  const agents = ['prod', 'prod-2', 'test'];
  const clusters = [...agents.map(cluster), { name: 'in-cluster', server: 'https://kubernetes.default.svc' }];
  const first = Number(process.env.SEED ?? 1);
  const seeds = effort(3_000, 200_000);
  for (let seed = first; seed < first + seeds; seed++) {
    const dice = new Random(seed);
    const any = <T>(values: readonly T[]): T => dice.pick([...values]) as T;
    const some = <T>(make: () => T, most = 3): T[] => Array.from({ length: dice.integer(0, most) }, make);
    const words = ['a', 'ab', 'b', 'team-a', 'team-b', '*', 'team-*', '?', '{a,b}', '[ab]'];
    const serverPattern = () =>
      any([...clusters.map(({ server }) => server), '*', 'https://proxy:9090*', 'https://*=prod*', 'https://*']);
    const clusterPattern = () => any([...clusters.map(({ name }) => name), 'prod*', 'te?t', '!prod', serverPattern()]);
    const spec = {
      destinations: some(() =>
        any<Destination>([
          { name: clusterPattern(), namespace: any(words) },
          { server: serverPattern(), namespace: any([...words, '!team-a']) },
          { server: `!${serverPattern()}`, namespace: any(words) },
          { name: `!${any(['prod', 'test'])}`, namespace: any(words) },
          { name: clusterPattern(), server: serverPattern(), namespace: any([...words, '!team-a']) },
          { name: `!${any(['prod', 'test'])}`, server: `!${serverPattern()}`, namespace: any([...words, '!team-a']) },
        ]),
      ),
      syncWindows: some(() => ({
        kind: any(['allow', 'deny']),
        schedule: any(['* * * * *', '0 0 * * *']),
        ...(dice.chance(0.5) ? { applications: some(() => any(words)) } : {}),
        ...(dice.chance(0.7) ? { clusters: some(clusterPattern) } : {}),
        ...(dice.chance(0.5) ? { namespaces: some(() => any(words)) } : {}),
        ...(dice.chance(0.5) ? { andOperator: dice.chance(0.7) } : {}),
      })),
      destinationServiceAccounts: some(() => ({
        server: serverPattern(),
        namespace: any(words),
        defaultServiceAccount: any(['one', 'two', 'three']),
      })),
    };
    const agent = any(agents);
    const local = projectForAgent(project(spec), target(agent), 'destination');
    const [name, namespace] = [any(['a', 'b', 'team-a', 'team-c']), any(['a', 'b', 'team-a', 'team-b'])];
    const onHub = { name, destination: { ...cluster(agent), namespace } };
    const inCluster = { name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace };
    const message = `seed ${seed}: ${JSON.stringify({ spec, agent, name, namespace, local: local.spec })}`;
    // By the name alone, as copies have it, and with the server that older versions of Argo CD add.
    for (const server of ['', inCluster.server]) {
      const there = { name, destination: { ...inCluster, server } };
      const applying = (windows: readonly SyncWindow[] = [], app: App) =>
        new Set(windows.filter((one) => windowMatches(one, app)).map(({ kind, schedule }) => `${kind} ${schedule}`));
      expect(applying(local.spec.syncWindows, there), message).toEqual(applying(spec.syncWindows, onHub));
    }
    expect(accountFor(local.spec.destinationServiceAccounts ?? [], { name, destination: inCluster }), message).toBe(
      accountFor(spec.destinationServiceAccounts, onHub),
    );
    const isFor = isProjectForAgent(project(spec), target(agent), 'destination');
    expect(isFor && permitsDestination(local, inCluster), message).toBe(
      permitsDestination(project(spec), onHub.destination),
    );
    expect(permitsDestination(local, { name: 'other', server: 'https://other', namespace }), message).toBe(false);
  }
});
