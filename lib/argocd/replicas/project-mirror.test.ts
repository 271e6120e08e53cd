import { describe, expect, test } from 'vitest';
import { type AppProject, type Destination, type ProjectMirrorPlace, projectForHub } from '../index.ts';

const project = (name: string, spec: AppProject['spec'] = { sourceRepos: ['*'] }): AppProject => ({
  metadata: { name },
  spec,
});

const edge = {
  agent: 'edge',
  cluster: { name: 'edge', server: 'https://proxy:9090?agentName=edge' },
  keepsGroups: false,
};

describe('a mirror gives no right on the hub beyond the Applications of its agent', () => {
  test('role policies are built anew for these, and everything else in roles is dropped', () => {
    const policies = [
      'p, proj:sample:reader, applications, get, sample/*, allow',
      'p,proj:sample:reader,logs,get,sample/x,allow',
      ' p, proj:sample:reader, exec, create, sample/*, deny',
      'p, proj:sample:reader, applications, action/apps/Deployment/*, sample/x-*, allow',
      // Nothing that follows is about the agent's Applications.
      'p, proj:sample, exec, create, sample/*, allow',
      'p, proj:sample:reader, applications, get, sample/ns/x, allow',
      'p, proj:edge-sample:reader, applications, *, edge-sample/*, allow',
      'p, proj:edge-sample:reader, applications, *, edge-sample/edge/*, allow',
      'p, proj:sample:reader, applicationsets, *, sample/*, allow',
      'p, proj:sample:reader, clusters, create, sample/*, allow',
      'p, proj:sample:reader, repositories, create, sample/*, allow',
      'p, proj:sample:reader, *, *, sample/*, allow',
      'p, proj:sample:reader, constructor, get, sample/*, allow',
      'p, proj:sample:reader, applications, get, *, allow',
      'p, proj:sample:reader, applications, get, sample*, allow',
      'p, proj:sample:reader, applications, get, sample/a|b, allow',
      'p, proj:sample:reader, applications, get|.*, sample/*, allow',
      'p, proj:sample:reader, applications, get, sample/*, allow\np, role:admin, applications, *, */*, allow',
      'p, proj:sample:reader, applications, get, sample/*, allow, x',
      'p, proj:sample:other, applications, get, sample/*, allow',
      'p, role:readonly, applications, *, sample/*, allow',
      'p, example-user, extensions, invoke, httpbin, allow',
      'g, group, proj:sample:reader',
      'g, proj:sample:reader, role:admin',
    ];
    const roles = [
      { name: 'reader', description: 'd', groups: ['staff'], jwtTokens: [{ iat: 1, id: 'x' }], policies, more: 1 },
      { name: 'r, applications, *, *, allow\np, role:readonly', policies: [] },
    ];
    expect(projectForHub(project('sample', { roles }), edge).spec.roles).toEqual([
      {
        name: 'reader',
        description: 'd',
        policies: [
          'p, proj:edge-sample:reader, applications, get, edge-sample/edge/*, allow',
          'p, proj:edge-sample:reader, logs, get, edge-sample/edge/x, allow',
          'p, proj:edge-sample:reader, exec, create, edge-sample/edge/*, deny',
          'p, proj:edge-sample:reader, applications, action/apps/Deployment/*, edge-sample/edge/x-*, allow',
        ],
      },
    ]);
  });

  test('a role whose denial cannot be built anew allows nothing', () => {
    const allow = 'p, proj:sample:r, applications, *, sample/*, allow';
    const allowed = 'p, proj:edge-sample:r, applications, *, edge-sample/edge/*, allow';
    const policiesWith = (line: string) => {
      const roles = [{ name: 'r', policies: [allow, line] }];
      return (projectForHub(project('sample', { roles }), edge).spec.roles as { policies: string[] }[])[0]?.policies;
    };
    expect(policiesWith('p, proj:sample:r, applications, sync, sample/{a;b}, deny')).toEqual([]);
    expect(policiesWith('p, proj:sample:r, *, sync, sample/*, deny')).toEqual([]);
    expect(policiesWith('p, proj:sample:r, clusters, get, sample/*, deny')).toEqual([allowed]);
    expect(policiesWith('p, proj:sample:r, applications, sync, sample/elsewhere/x, deny')).toEqual([allowed]);
  });

  test('groups keep a role when the principal allows it, those alone that Argo CD accepts', () => {
    const groups = [
      'staff',
      'a b:c/d',
      '"x, y" ',
      'x, proj:y:z',
      'x\ng, me, role:admin',
      '',
      ' ',
      '"',
      '"a"b"',
      ' staff',
    ];
    const roles = [{ name: 'r', groups }];
    expect(projectForHub(project('sample', { roles }), { ...edge, keepsGroups: true }).spec.roles).toEqual([
      { name: 'r', policies: [], groups: ['staff', 'a b:c/d', '"x, y"'] },
    ]);
  });

  test("its destinations are the agent's cluster alone", () => {
    const here = { name: 'edge', server: 'https://proxy:9090\\?agentName=edge' };
    const destinationsOf = (destinations: Destination[], cluster: ProjectMirrorPlace['cluster'] = edge.cluster) =>
      projectForHub(project('sample', { destinations }), { ...edge, cluster }).spec.destinations;
    expect(
      destinationsOf([
        { server: '*', namespace: '*' },
        { name: '*', namespace: '!kube-system' },
        { server: 'https://kubernetes.default.svc', namespace: '*' },
        { server: '!https://elsewhere', namespace: 'x', other: 1 },
        { namespace: 'nowhere' },
      ]),
    ).toEqual([
      { ...here, namespace: '*' },
      { ...here, namespace: '!kube-system' },
      { ...here, namespace: 'x' },
    ]);
    expect(destinationsOf([{ server: '*', namespace: '*' }, { server: '!https://kubernetes.*' }])).toEqual([]);
    expect(destinationsOf([{ server: '*', namespace: '*' }, { name: '!in-*' }])).toEqual([]);
    expect(destinationsOf([{ server: '*', namespace: '*' }], { name: '!*[x]', server: 'https://[::1]' })).toEqual([
      { name: '\\!\\*\\[x\\]', server: 'https://\\[::1\\]', namespace: '*' },
    ]);
    expect(
      projectForHub(project('sample', { destinations: [{ server: '*' }] }), { ...edge, cluster: undefined }).spec,
    ).toEqual({ destinations: [], sourceNamespaces: ['edge'] });
  });

  test.each([
    (patterns: string[]) => ({ destinations: patterns.map((one) => ({ server: `!${one}`, namespace: '*' })) }),
    (patterns: string[]) => ({ syncWindows: [{ clusters: patterns }] }),
    (patterns: string[]) => ({
      destinationServiceAccounts: patterns.map((server) => ({ server, defaultServiceAccount: 'deployer' })),
    }),
  ])('patterns that take long are not matched (%#)', (specOf) => {
    const patterns = Array.from({ length: 2_000 }, (_, index) => `*{${','.repeat(100)}${index}}`);
    expect(() => projectForHub(project('sample', specOf(patterns)), edge)).toThrow('patterns for clusters');
    expect(() => projectForHub(project('sample', specOf(patterns.slice(0, 1_000))), edge)).not.toThrow();
  });

  test('unknown fields are dropped, and clusters in known ones are those of the hub', () => {
    const spec = {
      sourceRepos: ['*'],
      description: 'd',
      permitOnlyProjectScopedClusters: true,
      inventedLater: ['*'],
      signatureKeys: [{ keyID: 'k', x: 1 }],
      sourceIntegrity: { git: { policies: [{ repos: [{ url: '*' }], gpg: { mode: 'head', keys: ['k'] } }] }, x: 1 },
      orphanedResources: { warn: true, ignore: [{ kind: 'ConfigMap' }] },
      clusterResourceWhitelist: [{ group: '*', kind: '*', name: 'x', y: 1 }],
      namespaceResourceBlacklist: null as never,
      syncWindows: [
        { kind: 'deny', schedule: '* * * * *', duration: '1h', clusters: ['in-*'], syncOverrun: true, x: 1 },
        { kind: 'deny', schedule: '* * * * *', duration: '1h', clusters: ['elsewhere'] },
      ],
      destinationServiceAccounts: [
        { server: 'https://kubernetes.*', namespace: 'n', defaultServiceAccount: 'deployer' },
        { server: 'https://elsewhere', namespace: 'n', defaultServiceAccount: 'other' },
      ],
    };
    expect(projectForHub(project('sample', spec), edge).spec).toEqual({
      sourceNamespaces: ['edge'],
      sourceRepos: ['*'],
      description: 'd',
      signatureKeys: [{ keyID: 'k' }],
      sourceIntegrity: { git: { policies: [{ repos: [{ url: '*' }], gpg: { mode: 'head', keys: ['k'] } }] } },
      orphanedResources: { warn: true, ignore: [{ kind: 'ConfigMap' }] },
      clusterResourceWhitelist: [{ group: '*', kind: '*', name: 'x' }],
      syncWindows: [{ kind: 'deny', schedule: '* * * * *', duration: '1h', clusters: ['edge'], syncOverrun: true }],
      destinationServiceAccounts: [
        { server: 'https://proxy:9090\\?agentName=edge', namespace: 'n', defaultServiceAccount: 'deployer' },
      ],
    });
  });
});
