import { describe, expect, test } from 'vitest';
import { wellKnown } from '../../base/index.ts';
import { type Application, annotations, mirrorProject, projectObjection, specChecksum } from '../index.ts';
import {
  fieldsOfMirror,
  fieldsOfSource,
  hubSpecOf,
  mirrorAnnotations,
  mirrorDigest,
  mirroredUid,
  mirrorSpec,
  mirrorStatus,
  sourceSpecOf,
} from './mirror.ts';
import { ownApplication } from './testing/stage.ts';

const place = { agent: 'a', cluster: 'cluster-a' };
const skipReconcile = 'argocd.argoproj.io/skip-reconcile';
const skipped = { [skipReconcile]: 'true' };

/** The mirror of an Application, as the principal makes it. */
function mirrorOf(source: Application): Application {
  const fields = fieldsOfSource(source);
  return {
    metadata: {
      namespace: 'a',
      name: source.metadata.name,
      uid: 'hub-uid',
      labels: { ...fields.labels },
      annotations: mirrorAnnotations(fields, source.metadata.uid ?? '', undefined),
      finalizers: [...fields.finalizers],
    },
    spec: mirrorSpec(fields, place),
    status: mirrorStatus(fields, place),
    ...(source.operation === undefined ? {} : { operation: source.operation }),
  };
}

const rich = ownApplication(
  {
    uid: 'u',
    labels: { team: 'x' },
    annotations: { note: 'n', [annotations.lastApplied]: '{}', [annotations.notified]: '{}' },
    finalizers: ['resources-finalizer.argocd.argoproj.io', 'foregroundDeletion'],
    ownerReferences: [{ kind: 'ApplicationSet', name: 'set' }],
  },
  {
    status: {
      sync: { status: 'Synced' },
      resources: [
        { group: 'argoproj.io', kind: 'Application', version: 'v1alpha1', namespace: 'argocd', name: 'child' },
        { group: 'argoproj.io', kind: 'AppProject', namespace: 'argocd', name: 'project' },
        { kind: 'ConfigMap', namespace: 'argocd', name: 'config' },
      ],
    },
  },
);

describe('what a mirror looks like', () => {
  test('its project is prefixed, its destination names the cluster', () => {
    expect(mirrorOf(rich).spec).toEqual({
      project: 'a-default',
      source: { path: 'p0' },
      destination: { name: 'cluster-a', namespace: 'shop' },
    });
  });

  test('child Applications are where their mirrors are, other resources where they are', () => {
    expect(mirrorOf(rich).status?.resources).toEqual([
      { group: 'argoproj.io', kind: 'Application', version: 'v1alpha1', namespace: 'a', name: 'child' },
      { group: 'argoproj.io', kind: 'AppProject', namespace: 'argocd', name: 'project' },
      { kind: 'ConfigMap', namespace: 'argocd', name: 'config' },
    ]);
  });

  test('labels, annotations and finalizers are those of the agent that mean something on the hub', () => {
    const { metadata } = mirrorOf(rich);
    expect(metadata.labels).toEqual({ team: 'x' });
    expect(metadata.annotations).toEqual({ note: 'n', [annotations.sourceUid]: 'u', ...skipped });
    expect(metadata.finalizers).toEqual(['resources-finalizer.argocd.argoproj.io']);
    expect(metadata.ownerReferences).toBeUndefined();
  });

  test('it is no part of an Application of the hub, whatever its agent says', () => {
    const tracked = { note: 'n', [wellKnown.trackingAnnotation]: 'apps:argoproj.io/Application:a/one' };
    const source = { ...rich, metadata: { ...rich.metadata, annotations: tracked } };
    const mirror = mirrorOf(source);
    expect(mirror.metadata.annotations).toEqual({ note: 'n', [annotations.sourceUid]: 'u', ...skipped });
    expect(mirrorDigest(fieldsOfMirror(mirror, 'a'), mirror)).toBe(mirrorDigest(fieldsOfSource(source), source));
  });

  test('annotations that are its own stay', () => {
    const mirror = mirrorOf(rich);
    const marked = {
      ...mirror.metadata.annotations,
      [annotations.notified]: 'hub',
      [annotations.refresh]: 'normal',
      x: 'y',
    };
    const kept = mirrorAnnotations(fieldsOfSource(rich), 'u', {
      ...mirror,
      metadata: { ...mirror.metadata, annotations: marked },
    });
    expect(kept).toEqual({
      note: 'n',
      ...skipped,
      [annotations.sourceUid]: 'u',
      [annotations.notified]: 'hub',
      [annotations.refresh]: 'normal',
    });
  });

  test("the marks of a managed past are the agent's own affair", () => {
    const source = ownApplication({
      uid: 'u',
      annotations: { [annotations.sourceUid]: 'of-old', [annotations.principalUid]: 'p' },
    });
    expect(mirrorOf(source).metadata.annotations).toEqual({ [annotations.sourceUid]: 'u', ...skipped });
  });

  test.each(['true', 'false', undefined])('the hub skips it, its cluster decides for itself: %s', (own) => {
    const source = ownApplication({ uid: 'u', annotations: own === undefined ? {} : { [skipReconcile]: own } });
    const mirror = mirrorOf(source);
    expect(mirror.metadata.annotations?.[skipReconcile]).toBe('true');
    expect(mirrorDigest(fieldsOfMirror(mirror, 'a'), mirror)).toBe(mirrorDigest(fieldsOfSource(source), source));
  });
});

describe('project names', () => {
  test('defect 31: every project is prefixed; none means default', () => {
    expect(mirrorProject('a', 'team')).toBe('a-team');
    expect(mirrorProject('a', 'default')).toBe('a-default');
    expect(mirrorProject('a', '')).toBe('a-default');
    expect(mirrorProject('a', undefined)).toBe('a-default');
  });

  test('a name that no object can have is objected to in words for people', () => {
    expect(projectObjection('p'.repeat(253))).toBeUndefined();
    expect(projectObjection('p'.repeat(254))).toMatch(/254 characters are more than the 253 .* shorter name/);
  });

  test("agents whose names begin alike do not take each other's projects for theirs", () => {
    const mirror = { ...mirrorOf(rich), spec: { project: 'a-b-team' } };
    expect(fieldsOfMirror(mirror, 'a').spec.project).toBe('b-team');
    expect(fieldsOfMirror(mirror, 'a-b').spec.project).toBe('team');
    expect(fieldsOfMirror(mirror, 'c').spec.project).toBe('a-b-team');
  });
});

describe('what either side can tell without the other', () => {
  test.each<[string, Application]>([
    ['a rich one', rich],
    ['one without project', ownApplication({ uid: 'u' }, { spec: { source: {} } })],
    [
      'one by cluster name',
      ownApplication({}, { spec: { project: 'x', destination: { name: 'in-cluster', namespace: 'n' } } }),
    ],
    ['one with an operation', ownApplication({}, { operation: { sync: {} } })],
  ])('defect 14: the digest of %s is that of its mirror', (_, source) => {
    const mirror = mirrorOf(source);
    expect(mirrorDigest(fieldsOfMirror(mirror, 'a'), mirror)).toBe(mirrorDigest(fieldsOfSource(source), source));
  });

  test.each<[string, (mirror: Application) => Application]>([
    ['spec', (mirror) => ({ ...mirror, spec: { ...mirror.spec, source: { path: 'x' } } })],
    ['status', (mirror) => ({ ...mirror, status: {} })],
    ['operation', (mirror) => ({ ...mirror, operation: { sync: {} } })],
    ['labels', (mirror) => ({ ...mirror, metadata: { ...mirror.metadata, labels: {} } })],
    ['annotations', (mirror) => ({ ...mirror, metadata: { ...mirror.metadata, annotations: { note: 'other' } } })],
    ['finalizers', (mirror) => ({ ...mirror, metadata: { ...mirror.metadata, finalizers: [] } })],
    [
      'a request',
      (mirror) => ({
        ...mirror,
        metadata: { ...mirror.metadata, annotations: { note: 'n', [annotations.refresh]: 'normal' } },
      }),
    ],
  ])('a mirror that differs in %s has another digest', (_, change) => {
    const mirror = change(mirrorOf(rich));
    expect(mirrorDigest(fieldsOfMirror(mirror, 'a'), mirror)).not.toBe(mirrorDigest(fieldsOfSource(rich), rich));
  });

  // Where nothing is rewritten but the project, the checksum of argocd-agent can match too.
  test('the checksum that the other side of either version hashes is told from here', () => {
    const mirror = mirrorOf(rich);
    expect(specChecksum(sourceSpecOf(mirror, 'a'))).toBe(specChecksum({ ...rich.spec }));
    expect(specChecksum(hubSpecOf(rich, 'a'))).toBe(specChecksum({ ...mirror.spec }));
  });

  test('a mirror that lost its mark shows something that its agent does not have', () => {
    const mirror = mirrorOf(rich);
    expect(mirroredUid(mirror)).toBe('u');
    const stripped = { ...mirror, metadata: { ...mirror.metadata, annotations: { [annotations.lastUpdated]: 't' } } };
    expect(mirroredUid(stripped)).toBe('hub-uid');
    expect(mirroredUid({ ...mirror, metadata: { ...mirror.metadata, annotations: {} } })).toBe('');
  });
});
