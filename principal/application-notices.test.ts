import { describe, expect, test } from 'vitest';
import { type Application, type AppProject, type Destination, isProjectForAgent } from '../lib/argocd/index.ts';
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
  default: { metadata: { name: 'default' }, spec: { destinations: [{ server: '*' }] } },
  strict: { metadata: { name: 'strict' }, spec: { destinations: [{ name: 'cluster2' }], sourceNamespaces: ['*'] } },
  here: { metadata: { name: 'here' }, spec: { destinations: [{ name: '*' }], sourceNamespaces: ['cluster2'] } },
  'auto-x': {
    metadata: { name: 'auto-x', annotations: { 'argocd-agent.argoproj-labs.io/mirror-of': 'auto' } },
    spec: {},
  },
};

function notice(app: Application, agent: string, mapping: 'destination' | 'namespace' = 'destination') {
  const { all } = clusters(
    cluster('1', 'cluster1', 'cluster1'),
    cluster('2', 'auto', 'auto'),
    cluster('3', 'plain'),
    cluster('4', 'other-name', 'cluster1'),
  );
  const sources: NoticeSources = {
    mapping,
    namespace: 'argocd',
    isMapped: (one) => one === 'cluster1' || one === 'auto',
    modeOf: (one) => (one === 'auto' ? 'autonomous' : undefined),
    agentOfCluster: (key) => all.agentOf(key),
    project: (name) => projects[name],
    isFor: (project, one) => isProjectForAgent(project, { agent: one, clusters: [] }, mapping),
  };
  return noticeOn(app, agent, sources);
}

describe('with destination-based mapping', () => {
  test.each([
    ['cluster1', 'default', undefined],
    ['cluster9', 'default', 'there is no agent named cluster9'],
    // The hub's own Argo CD has it.
    ['plain', 'default', undefined],
    [
      'other-name',
      'default',
      'there is no agent named other-name; the cluster of this name belongs to agent cluster1, which spec.destination.name must name',
    ],
    ['auto', 'default', 'agent auto is autonomous: it deploys no Applications of the hub'],
    ['cluster1', 'strict', 'AppProject strict does not allow destination cluster1, so cluster1 does not have it'],
    ['cluster1', 'auto-x', 'AppProject auto-x is a mirror of agent auto, so cluster1 does not have it'],
    // The cluster's own Argo CD reports this.
    ['cluster1', 'missing', undefined],
  ])('an Application for %s in project %s: %s', (name, project, expected) => {
    expect(notice(application({ name }, project), name)).toBe(expected);
  });
});

test('with namespace-based mapping', () => {
  const inNamespace = (namespace: string, destination: Destination, project?: string) =>
    notice(application(destination, project, { namespace }), namespace, 'namespace');
  expect(inNamespace('cluster9', { name: 'cluster9' })).toBe('there is no agent named cluster9');
  expect(inNamespace('cluster9', { name: 'in-cluster' })).toBeUndefined();
  expect(inNamespace('cluster9', { server: 'https://kubernetes.default.svc' })).toBeUndefined();
  expect(inNamespace('cluster9', { server: 'https://plain' })).toBeUndefined();
  expect(inNamespace('cluster9', { server: 'https://cluster1' })).toBe('there is no agent named cluster9');
  expect(inNamespace('argocd', { name: 'cluster9' }), "Argo CD's own namespace").toBeUndefined();
  expect(inNamespace('cluster1', { name: 'cluster1' }, 'here')).toBe(
    'AppProject here does not admit source namespace cluster1, so cluster1 does not have it',
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
