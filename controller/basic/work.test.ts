import { describe, expect, it } from 'vitest';
import { isArgoCdFinalizer, pullWorkName } from './names.ts';
import type { PullApplication } from './resources.ts';
import { type PullTarget, placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf, payloadFor, workFor } from './work.ts';

const group = 'apps.open-cluster-management.io';
const uid = '0f2b3c4d-1111-2222-3333-444455556666';

type Change = Partial<Omit<PullApplication, 'metadata'>> & { metadata?: Partial<PullApplication['metadata']> };

function application(change: Change = {}): PullApplication {
  const { metadata, ...rest } = change;
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: {
      namespace: 'argocd',
      name: 'guestbook',
      uid,
      resourceVersion: '7',
      labels: { [`${group}/pull-to-ocm-managed-cluster`]: 'true' },
      annotations: { [`${group}/ocm-managed-cluster`]: 'c1' },
      ...metadata,
    },
    spec: {
      project: 'default',
      source: { repoURL: 'https://git.example/x', path: 'guestbook', targetRevision: 'HEAD' },
      destination: { namespace: 'guestbook', server: 'https://elsewhere', name: '' },
    },
    ...rest,
  };
}

const annotated = (annotations: Record<string, string>, labels?: Record<string, string>) =>
  application({
    metadata: {
      annotations: Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`${group}/${key}`, value])),
      ...(labels ? { labels } : {}),
    },
  });
const labelled = (value: string) =>
  application({ metadata: { labels: { [`${group}/pull-to-ocm-managed-cluster`]: value } } });
const target: PullTarget = { cluster: 'c1', namespace: 'argocd', name: 'guestbook' };

describe('the intent of an Application', () => {
  it.each(['1', 't', 'T', 'TRUE', 'true', 'True'])('label %s: delivery to its cluster', (value) => {
    expect(pullIntentOf(labelled(value))).toEqual({ kind: 'valid', target });
  });

  it.each(['0', 'f', 'F', 'FALSE', 'false', 'False'])('label %s: no delivery', (value) => {
    expect(pullIntentOf(labelled(value))).toEqual({ kind: 'none' });
  });

  it('without the label or the annotation: no delivery', () => {
    expect(pullIntentOf(application({ metadata: { labels: {} } }))).toEqual({ kind: 'none' });
    expect(pullIntentOf(annotated({}))).toEqual({ kind: 'none' });
    expect(pullIntentOf(annotated({ 'ocm-managed-cluster': '' }))).toEqual({ kind: 'none' });
  });

  it.each([
    [
      labelled('yes'),
      'label apps.open-cluster-management.io/pull-to-ocm-managed-cluster is "yes"; it must be "true" or "false"',
    ],
    [
      annotated({ 'ocm-managed-cluster': 'C1/..' }),
      'annotation apps.open-cluster-management.io/ocm-managed-cluster is "C1/..", which cannot be the name of a ManagedCluster',
    ],
    [
      annotated({ 'ocm-managed-cluster': 'c1', 'ocm-managed-cluster-app-namespace': 'a_b' }),
      'annotation apps.open-cluster-management.io/ocm-managed-cluster-app-namespace is "a_b", which cannot be the name of a namespace',
    ],
  ])('what cannot be is named with its field (%#)', (one, problem) => {
    expect(pullIntentOf(one)).toEqual({ kind: 'invalid', problem });
  });

  it('an annotation sets the namespace on the cluster', () => {
    const intent = pullIntentOf(
      annotated({ 'ocm-managed-cluster': 'c2', 'ocm-managed-cluster-app-namespace': 'gitops' }),
    );
    expect(intent.kind === 'valid' && placeKey(intent.target)).toBe('c2/gitops/guestbook');
  });
});

describe('the copy', () => {
  it('is the Application without the settings of the hub', () => {
    const one = application({
      metadata: {
        labels: { [`${group}/pull-to-ocm-managed-cluster`]: 'true', team: 'blue' },
        annotations: {
          [`${group}/ocm-managed-cluster`]: 'c1',
          [`${group}/ocm-managed-cluster-app-namespace`]: 'argocd',
          'argocd.argoproj.io/skip-reconcile': 'true',
          'argocd.argoproj.io/refresh': 'hard',
          'kubectl.kubernetes.io/last-applied-configuration': '{"kind":"Application"}',
          note: 'kept',
        },
        finalizers: ['resources-finalizer.argocd.argoproj.io'],
      },
      status: { sync: { status: 'Synced' } },
    });
    const before = structuredClone(one);
    expect(payloadFor(one, target)).toEqual({
      apiVersion: 'argoproj.io/v1alpha1',
      kind: 'Application',
      metadata: {
        namespace: 'argocd',
        name: 'guestbook',
        labels: { team: 'blue' },
        annotations: { note: 'kept' },
        finalizers: ['resources-finalizer.argocd.argoproj.io'],
      },
      spec: {
        project: 'default',
        source: { repoURL: 'https://git.example/x', path: 'guestbook', targetRevision: 'HEAD' },
        destination: { namespace: 'guestbook', name: '', server: 'https://kubernetes.default.svc' },
      },
    });
    expect(one, 'the destination of the hub’s Application is not touched').toEqual(before);
  });

  it.each([
    [{}, { name: '', server: 'https://kubernetes.default.svc' }],
    [{ 'destination-name': 'in-cluster' }, { name: 'in-cluster', server: '' }],
    [{ 'destination-server': 'https://other' }, { name: '', server: 'https://other' }],
    [
      { 'destination-name': 'a', 'destination-server': 'https://b' },
      { name: 'a', server: 'https://b' },
    ],
  ])('has the destination that the annotations %j say', (annotations, destination) => {
    const one = annotated({ 'ocm-managed-cluster': 'c1', ...annotations });
    expect(payloadFor(one, target).spec?.destination).toEqual({ namespace: 'guestbook', ...destination });
    expect(payloadFor(one, target).metadata.annotations).toBeUndefined();
  });

  it('names the ApplicationSet that made it, and so does its work', () => {
    const owner = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name: 'all', uid: 'x' };
    const one = application({ metadata: { ownerReferences: [owner] } });
    const marks = {
      labels: { [`${group}/application-set`]: 'true' },
      annotations: { [`${group}/hosting-applicationset`]: 'argocd/all' },
    };
    expect(payloadFor(one, target).metadata).toMatchObject(marks);
    expect(workFor(one, target, payloadFor(one, target)).metadata).toMatchObject(marks);
  });

  it('carries an operation and a refresh with ids', () => {
    const operation = { sync: { revision: 'abc' }, info: [{ name: 'Reason', value: 'test' }] };
    const copy = payloadFor(application(), target, {
      operation: { id: 'one', operation },
      refresh: { id: '7', how: 'hard' },
    });
    expect(copy.operation).toEqual({
      sync: { revision: 'abc' },
      info: [
        { name: 'Reason', value: 'test' },
        { name: `${group}/operation`, value: 'one' },
      ],
    });
    expect(copy.metadata.annotations).toEqual({
      [`${group}/operation`]: 'one',
      [`${group}/refresh`]: '7',
      'argocd.argoproj.io/refresh': 'hard',
    });
  });
});

describe('the work', () => {
  it('has the name, labels, annotations and rules of argocd-pull-integration', () => {
    const one = application();
    const work = workFor(one, target, payloadFor(one, target));
    expect(work.metadata).toEqual({
      namespace: 'c1',
      name: 'guestbook-0f2b3',
      labels: { [`${group}/pull-to-ocm-managed-cluster`]: 'true' },
      annotations: {
        [`${group}/hub-application-namespace`]: 'argocd',
        [`${group}/hub-application-name`]: 'guestbook',
      },
    });
    expect(applicationKeyOf(work)).toBe('argocd/guestbook');
    expect(work.spec.workload.manifests).toHaveLength(1);
    const [config] = work.spec.manifestConfigs ?? [];
    expect(config).toMatchObject({
      resourceIdentifier: { group: 'argoproj.io', resource: 'applications', namespace: 'argocd', name: 'guestbook' },
      updateStrategy: {
        type: 'ServerSideApply',
        serverSideApply: { force: true, ignoreFields: [{ condition: 'OnSpokeChange', jsonPaths: ['.operation'] }] },
      },
    });
    expect(config?.feedbackRules?.slice(0, 5)).toEqual(
      [
        ['healthStatus', '.status.health.status'],
        ['syncStatus', '.status.sync.status'],
        ['operationStateStartedAt', '.status.operationState.startedAt'],
        ['operationStatePhase', '.status.operationState.phase'],
        ['syncRevision', '.status.sync.revision'],
      ].map(([name, path]) => ({ type: 'JSONPaths', jsonPaths: [{ name, path }] })),
    );
  });

  it('ocm defect M20: ocm defect M22: has a name that the work agent accepts, for every length of the Application name and every UID', () => {
    const long = `a${'b'.repeat(180)}.${'c'.repeat(60)}`;
    const names = [long, `${long}x`].map((name) => pullWorkName({ name, uid }));
    expect(new Set(names).size).toBe(2);
    for (const name of names) {
      expect(name.length).toBeLessThanOrEqual(253 - 65);
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    }
    expect(pullWorkName({ name: `a${'b'.repeat(170)}.c${'d'.repeat(60)}`, uid })).not.toMatch(/\.-/);
    expect(pullWorkName({ name: 'a', uid: 'xy' })).toBe('a-xy');
    expect(pullWorkName({ name: 'a' })).toBe('a');
    expect(pullWorkName({ name: 'a', uid }, true)).toBe(`a-${uid}`);
  });
});

it.each([
  ['resources-finalizer.argocd.argoproj.io', true],
  ['resources-finalizer.argocd.argoproj.io/background', true],
  ['post-delete-finalizer.argocd.argoproj.io/cleanup', true],
  ['pre-delete-finalizer.argocd.argoproj.io', true],
  ['foregroundDeletion', false],
  ['example.com/resources-finalizer.argocd.argoproj.io', false],
])('finalizer %s is of Argo CD: %s', (finalizer, expected) => {
  expect(isArgoCdFinalizer(finalizer)).toBe(expected);
});

describe('a copy has no marks of the hub', () => {
  it('names no owner and no other place, and has no options of an owner', () => {
    const mine = 'argocd.argoproj.io';
    const copy = payloadFor(
      application({
        metadata: {
          labels: { 'app.kubernetes.io/instance': 'root', team: 'a' },
          annotations: {
            [`${mine}/tracking-id`]: 'root:argoproj.io/Application:argocd/guestbook',
            [`${mine}/installation-id`]: 'hub',
            [`${mine}/managed-by-url`]: 'https://hub',
            [`${mine}/sync-options`]: 'Prune=false',
            [`${mine}/compare-options`]: 'ServerSideDiff=true',
            note: 'stays',
          },
        },
      }),
      target,
    );
    expect(copy.metadata.labels).toEqual({ team: 'a' });
    expect(copy.metadata.annotations).toEqual({ [`${mine}/compare-options`]: 'ServerSideDiff=true', note: 'stays' });
  });

  it("has Argo CD's own finalizers alone", () => {
    const own = ['resources-finalizer.argocd.argoproj.io', 'post-delete-finalizer.argocd.argoproj.io/cleanup'];
    const copyOf = (finalizers: string[]) => payloadFor(application({ metadata: { finalizers } }), target).metadata;
    expect(copyOf([...own, 'example.com/hold', 'foregroundDeletion']).finalizers).toEqual(own);
    expect(copyOf(['example.com/hold'])).not.toHaveProperty('finalizers');
  });
});
