import { describe, expect, test } from 'vitest';
import {
  type Application,
  type AppProject,
  type Destination,
  excessOf,
  isProjectForAgent,
  projectOfRepository,
  type RepositorySecret,
} from '../lib/argocd/index.ts';
import type { Informer, InformerHandler, Secret } from '../lib/kube/index.ts';
import { type NoticeSources, noticeOn } from './application-notices.ts';
import { HubClusters } from './clusters/hub-clusters.ts';

const encode = (text: string) => Buffer.from(text).toString('base64');

function cluster(secret: string, name: string, agent?: string): Secret {
  return {
    metadata: {
      name: secret,
      namespace: 'argocd',
      labels: {
        'argocd.argoproj.io/secret-type': 'cluster',
        ...(agent === undefined ? {} : { 'argocd-agent.argoproj-labs.io/agent-name': agent }),
      },
    },
    data: { name: encode(name), server: encode(`https://${name}/`) },
  };
}

/** The hub's clusters, and what was reported about them. */
function clusters(...secrets: Secret[]) {
  const changed: string[] = [];
  const all = new HubClusters((key) => changed.push(key));
  let handler: InformerHandler<Secret> | undefined;
  all.follow({
    subscribe: (given: InformerHandler<Secret>) => {
      handler = given;
      for (const secret of secrets) {
        given.added?.(secret, true);
      }
      return () => undefined;
    },
  } as unknown as Informer<Secret>);
  return { all, changed, handler: handler as InformerHandler<Secret> };
}

const application = (destination: Destination, project = 'default', more = {}): Application => ({
  metadata: { name: 'shop', namespace: 'argocd', ...more },
  spec: { project, destination },
});

const projects: Record<string, AppProject> = {
  // As Argo CD makes it.
  default: {
    metadata: { name: 'default' },
    spec: {
      sourceRepos: ['*'],
      destinations: [{ namespace: '*', server: '*' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  },
  strict: { metadata: { name: 'strict' }, spec: { destinations: [{ name: 'cluster2' }], sourceNamespaces: ['*'] } },
  here: { metadata: { name: 'here' }, spec: { destinations: [{ name: '*' }], sourceNamespaces: ['cluster2'] } },
  open: {
    metadata: { name: 'open' },
    spec: { destinations: [{ name: 'cluster1' }], sourceNamespaces: ['*'], sourceRepos: ['*'] },
  },
  narrow: {
    metadata: { name: 'narrow' },
    spec: { destinations: [{ name: 'cluster1' }], sourceRepos: ['https://git.example.com/team/**'] },
  },
  huge: {
    metadata: { name: 'huge' },
    spec: { destinations: Array.from({ length: 5_001 }, () => ({ name: 'cluster1' })) },
  },
  'auto-x': {
    metadata: { name: 'auto-x', annotations: { 'argocd-agent.argoproj-labs.io/mirror-of': 'auto' } },
    spec: {},
  },
};

function notice(
  app: Application,
  agent: string | undefined,
  mapping: 'destination' | 'namespace' = 'destination',
  held: RepositorySecret[] = [],
  shares = false,
  sharesDefault = mapping === 'destination',
) {
  const { all } = clusters(
    cluster('1', 'cluster1', 'cluster1'),
    cluster('2', 'auto', 'auto'),
    cluster('3', 'plain'),
    cluster('4', 'other-name', 'cluster1'),
    cluster('5', 'twice', 'cluster5'),
    cluster('6', 'twice'),
  );
  const sources: NoticeSources = {
    mapping,
    namespace: 'argocd',
    isAdmitted: ({ metadata }) => metadata.namespace === 'argocd',
    isMapped: (one) => one === 'cluster1' || one === 'auto',
    modeOf: (one) => (one === 'auto' ? 'autonomous' : undefined),
    agentOfCluster: (key) => all.agentOf(key),
    secretsWithUrl: (url) => all.secretsWithUrl(url),
    project: (name) => projects[name],
    excess: excessOf,
    virtual: (project) => project,
    isFor: (project, one) => isProjectForAgent(project, { agent: one, clusters: [] }, mapping),
    secrets: () => held,
    shares,
    sharesDefault,
    hasSecret: (secret) => projectOfRepository(secret) === 'open' && secret.metadata.labels?.env !== 'test',
  };
  return noticeOn(app, agent, sources);
}

test('by namespace, the untouched default project admits no namespace, and the owner hears of it', () => {
  const app = application({ name: 'cluster1' }, 'default', { namespace: 'cluster1' });
  expect(notice(app, 'cluster1', 'namespace')).toBe(
    'AppProject default does not admit source namespace cluster1, so cluster1 gets nothing new of this Application',
  );
});

const unseen =
  "no application controller of the hub's Argo CD has looked at this Application, so nobody deploys it: run one on the hub (chart value hubArgoCD.applicationController.enabled), or give the Application to an agent";

describe('with destination-based mapping', () => {
  test.each([
    ['cluster1', 'default', undefined],
    ['cluster9', 'default', 'there is no agent named cluster9'],
    ['plain', 'default', unseen],
    [
      'other-name',
      'default',
      'there is no agent named other-name; the cluster of this name belongs to agent cluster1, which spec.destination.name must name',
    ],
    ['auto', 'default', 'agent auto is autonomous: it deploys no Applications of the hub'],
    [
      'cluster1',
      'strict',
      'AppProject strict does not allow destination cluster1, so cluster1 gets nothing new of this Application',
    ],
    [
      'cluster1',
      'auto-x',
      'AppProject auto-x is a mirror of agent auto, so cluster1 gets nothing new of this Application',
    ],
    // The cluster's own Argo CD reports this.
    ['cluster1', 'missing', undefined],
    [
      'cluster1',
      'huge',
      'AppProject huge goes to no agent, so cluster1 gets nothing new of this Application: spec.destinations has 5001 entries, and 5000 are the most that are matched: use globs, or split the project',
    ],
  ])('an Application for %s in project %s: %s', (name, project, expected) => {
    expect(notice(application({ name }, project), name)).toBe(expected);
  });

  test.each<[string, Destination, string | undefined]>([
    ['the hub by name', { name: 'in-cluster' }, unseen],
    ['the hub by URL', { server: 'https://kubernetes.default.svc' }, unseen],
    ['a cluster without an agent by URL', { server: 'https://plain' }, unseen],
    [
      'a URL of two clusters',
      { server: 'https://twice' },
      'several cluster Secrets (argocd/5, argocd/6) have the URL in spec.destination.server, so no agent gets anything new of this Application: leave the URL to one of them, or set spec.destination.name to an agent and remove the server; a cluster that has it keeps it as it is',
    ],
    ['nothing', {}, 'spec.destination names no cluster: set spec.destination.name to an agent'],
    ['an agent by name, as a mirror without its marks', { name: 'auto' }, undefined],
    [
      'an unknown URL',
      { server: 'https://cluster9' },
      'no cluster Secret of the hub has the URL in spec.destination.server, so no agent gets anything new of this Application: correct it, or set spec.destination.name to an agent and remove the server; a cluster that has it keeps it as it is',
    ],
  ])('an Application that belongs to no agent, for %s', (_, destination, expected) => {
    expect(notice(application(destination), undefined)).toBe(expected);
    expect(notice(application(destination, 'default', { namespace: 'elsewhere' }), undefined)).toBeUndefined();
  });

  test('an Application of the hub that was made in the UI has an empty state of synchronisation', () => {
    const made = { ...application({ name: 'in-cluster' }), status: { sync: { status: '' }, health: {} } };
    expect(notice(made, undefined)).toBe(unseen);
  });

  test('nothing is said of an Application of the hub that its application controller has seen, or must not see', () => {
    const seen = { ...application({ name: 'in-cluster' }), status: { sync: { status: 'Unknown' } } };
    expect(notice(seen, undefined)).toBeUndefined();
    const annotations = { 'argocd.argoproj.io/skip-reconcile': 'true' };
    expect(notice(application({ name: 'in-cluster' }, 'default', { annotations }), undefined)).toBeUndefined();
  });
});

describe("credentials that stay on the hub, while the cluster's Argo CD cannot compare", () => {
  const url = 'https://git.example.com/shop.git';
  const failing = (project: string, type = 'ComparisonError', source: object = { source: { repoURL: url } }) => {
    const { spec, ...rest } = application({ name: 'cluster1' }, project);
    const conditions = [{ type, message: 'authentication required' }];
    return { ...rest, spec: { ...spec, ...source }, status: { conditions } };
  };
  const secret = (fields: Record<string, string>, labels = {}): RepositorySecret => ({
    metadata: {
      namespace: 'argocd',
      name: 'repo',
      labels: { 'argocd.argoproj.io/secret-type': 'repository', ...labels },
    },
    data: Object.fromEntries(Object.entries({ url, password: 'p', ...fields }).map(([k, v]) => [k, encode(v)])),
  });
  const stay = 'the hub keeps credentials for its source: Secret argocd/repo';

  test.each([
    [
      'no project',
      'open',
      secret({}),
      `${stay} has no project; set project: open in it, share such repositories (--share-repositories of the principal), or add the repository on the cluster`,
    ],
    [
      'the label',
      'open',
      secret({}, { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' }),
      `${stay} has the label argocd-agent.argoproj-labs.io/ignore-sync; remove it`,
    ],
    [
      'a selector',
      'open',
      secret({ project: 'open' }, { env: 'test' }),
      `${stay} does not match the principal's --label-selector`,
    ],
    [
      'a template',
      'open',
      secret({ url: 'https://git.example.com' }, { 'argocd.argoproj.io/secret-type': 'repo-creds' }),
      `${stay} has no project`,
    ],
  ])('%s', (_, project, held, expected) => {
    const text = notice(failing(project), 'cluster1', 'destination', [held]);
    expect(text).toContain(expected);
    expect(notice(application({ name: 'cluster1' }, project), 'cluster1', 'destination', [held])).toBeUndefined();
  });

  test('no project although such Secrets are shared', () => {
    const text = notice(failing('open'), 'cluster1', 'destination', [secret({})], true);
    expect(text).toContain(
      `${stay} goes only to clusters with an Application whose AppProject permits source and namespace`,
    );
  });

  test('a project that goes to no agent', () => {
    const failed = { ...failing('default'), metadata: { name: 'shop', namespace: 'cluster1' } };
    for (const project of ['', 'default']) {
      expect(notice(failed, 'cluster1', 'namespace', [secret({ project })], false, true)).toContain(
        `${stay} needs the Application's project, and AppProject default does not go to cluster1; use another one for both`,
      );
    }
  });

  test.each([
    ['the agent has them', failing('open'), [secret({ project: 'open' })]],
    ['it has others for the repository', failing('open'), [secret({}), secret({ project: 'open' })]],
    ['they are for another project', failing('open'), [secret({ project: 'strict' })]],
    ['its AppProject does not permit the source', failing('narrow'), [secret({})]],
    ['nor the source of a template', failing('narrow'), [secret({ project: 'narrow' })]],
    ['there are none', failing('open'), [secret({ password: '' })]],
    ['another repository', failing('open'), [secret({ url: 'https://git.example.com/shop2' })]],
    ['another error', failing('open', 'SyncError'), [secret({})]],
    ['no address', failing('open', 'ComparisonError', { source: null, sources: [{ repoURL: 5 }, null] }), [secret({})]],
  ])('nothing is said: %s', (_, failed, held) => {
    expect(notice(failed as unknown as Application, 'cluster1', 'destination', held)).toBeUndefined();
  });

  test('each of several sources is named', () => {
    const sources = [{ repoURL: url }, { repoURL: 'https://git.example.com/b' }, { repoURL: url }];
    const other = { ...secret({ url: 'https://git.example.com/b' }), metadata: { ...secret({}).metadata, name: 'b' } };
    const text = notice(failing('open', 'ComparisonError', { sources }), 'cluster1', 'destination', [
      secret({}),
      other,
    ]);
    expect(text?.match(/Secret argocd\/\w+/g)).toEqual(['Secret argocd/repo', 'Secret argocd/b']);
  });
});

test('with namespace-based mapping', () => {
  const inNamespace = (namespace: string, destination: Destination, project?: string) =>
    notice(application(destination, project, { namespace }), namespace, 'namespace');
  expect(inNamespace('cluster9', { name: 'cluster9' })).toBe('there is no agent named cluster9');
  expect(inNamespace('cluster9', { name: 'in-cluster' })).toBe(unseen);
  expect(inNamespace('cluster9', { server: 'https://kubernetes.default.svc' })).toBe(unseen);
  expect(inNamespace('cluster9', { server: 'https://plain' })).toBe(unseen);
  expect(inNamespace('argocd', { name: 'in-cluster' }), "Argo CD's own namespace").toBe(unseen);
  const own = application({ name: 'in-cluster' }, 'default', { namespace: 'cluster1' });
  expect(notice(own, 'cluster1', 'namespace', [], false, true), 'its agent has it').toBeUndefined();
  expect(inNamespace('cluster9', { server: 'https://cluster1' })).toBe('there is no agent named cluster9');
  expect(inNamespace('argocd', { name: 'cluster9' }), "Argo CD's own namespace").toBeUndefined();
  expect(inNamespace('cluster1', { name: 'cluster1' }, 'here')).toBe(
    'AppProject here does not admit source namespace cluster1, so cluster1 gets nothing new of this Application',
  );
  const mirror = { namespace: 'auto', annotations: { 'argocd-agent.argoproj.io/last-updated': 'x' } };
  expect(notice(application({ name: 'auto' }, 'auto-x', mirror), 'auto', 'namespace')).toBeUndefined();
});

test("the hub's clusters are known by name and URL, and changes are reported", () => {
  const { all, changed, handler } = clusters(cluster('1', 'one'));
  expect([all.agentOf('one'), all.agentOf('https://one'), all.agentOf('two')]).toEqual(['', '', undefined]);
  changed.length = 0;
  handler.updated?.(cluster('1', 'one'), cluster('1', 'two', 'agent'));
  expect([all.agentOf('one'), all.agentOf('two'), all.agentOf('https://two')]).toEqual([undefined, 'agent', 'agent']);
  expect(changed).toEqual(['one', 'https://one', 'two', 'https://two']);
  handler.added?.(cluster('2', 'two'), false);
  handler.deleted?.(cluster('1', 'two', 'agent'));
  expect(all.agentOf('two')).toBe('');
  handler.deleted?.(cluster('2', 'two'));
  expect(all.agentOf('two')).toBeUndefined();
});

test('a URL leads to an agent while one cluster Secret alone has it', () => {
  const { all, handler } = clusters(cluster('1', 'one', 'agent'));
  const named = cluster('3', 'https://one', 'hidden');
  expect([all.agentOfUrl('https://one'), all.agentOfUrl('https://one/'), all.agentOfUrl('one')]).toEqual([
    'agent',
    undefined,
    undefined,
  ]);
  handler.added?.(named, false);
  expect(all.agentOfUrl('https://one'), 'a name is no URL').toBe('agent');
  handler.added?.(cluster('2', 'one'), false);
  expect([all.agentOfUrl('https://one'), all.secretsWithUrl('https://one')]).toEqual([undefined, ['1', '2']]);
  handler.deleted?.(cluster('1', 'one', 'agent'));
  expect([all.agentOfUrl('https://one'), all.secretsWithUrl('https://one')]).toEqual(['', ['2']]);
});
