import { expect, test } from 'vitest';
import { incoming } from './autonomous/testing/alone.ts';
import { ownApplication, StagePrincipal } from './autonomous/testing/stage.ts';
import { annotations } from './index.ts';
import { InstanceNames, withoutOwner } from './owner-marks.ts';
import { newCopy } from './replicas/copy.ts';
import { appProjectKind, gpgKeysKind, repositoryKind } from './replicas/kinds.ts';
import { hubApplication, Lab } from './testing/lab.ts';

const tracking = 'argocd.argoproj.io/tracking-id';
const label = 'app.kubernetes.io/instance';
const options = {
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'argocd.argoproj.io/compare-options': 'ServerSideDiff=true',
  'argocd.argoproj.io/managed-by-url': 'https://evil.example.com',
};
const configuredLabel = 'argocd.argoproj.io/instance';
const marks = { [tracking]: 'root:argoproj.io/Application:a/shop', [annotations.installationId]: 'hub' };

/** An Application of the hub that its app of apps `root` made, and its copy. */
async function copyOf(metadata: object, roots: readonly string[] = ['root']) {
  const lab = new Lab();
  for (const name of roots) {
    lab.hub.objects.create(hubApplication({ namespace: 'argocd', name }));
  }
  lab.hub.objects.create(hubApplication(metadata));
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(5_000);
  return agent.copy()?.metadata;
}

test('a copy is no part of an Application of the hub', async () => {
  const copy = await copyOf({ annotations: { ...marks, note: 'x' }, labels: { team: 'a' } });
  expect(copy?.annotations).not.toHaveProperty([tracking]);
  expect(copy?.annotations).not.toHaveProperty([annotations.installationId]);
  expect(copy?.annotations).toMatchObject({ note: 'x' });
});

test('a copy has the options of the Application: its own Argo CD obeys some of them', async () => {
  expect((await copyOf({ annotations: { ...marks, ...options } }))?.annotations).toMatchObject(options);
});

test('a label that Argo CD is often told to use instead is a mark as well', async () => {
  const copy = await copyOf({ labels: { [configuredLabel]: 'root', [label]: 'root', team: 'a' } });
  expect(copy?.labels).toEqual({ team: 'a' });
});

test.each([
  ['that names the owner in the annotation', { annotations: marks, labels: { [label]: 'root' } }, [], false],
  ['that names an Application', { labels: { [label]: 'root' } }, ['root'], false],
  ['that names one outside of Argo CD’s namespace', { labels: { [label]: 'argocd_root' } }, ['root'], false],
  ['that a user set', { labels: { [label]: 'blue' } }, ['root'], true],
])('the instance label %s', async (_, metadata, roots, stays) => {
  const copy = await copyOf(metadata, roots);
  expect(copy).toBeDefined();
  expect(copy?.labels?.[label] !== undefined).toBe(stays);
});

test('what an earlier version copied is taken off when the agent starts', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.cluster.objects.create(
    hubApplication(
      { namespace: 'argocd', annotations: { ...marks, [annotations.sourceUid]: 'u' } },
      { spec: { project: 'default', destination: { name: 'in-cluster' } } },
    ),
  );
  agent.stop.abort();
  const next = lab.agent({}, agent.cluster);
  await lab.run(5_000);
  expect(next.copy()?.metadata.annotations).toEqual({ [annotations.sourceUid]: 'u' });
});

test.each([
  ['AppProjects', appProjectKind, { spec: {} }],
  ['repository Secrets', repositoryKind, {}],
  ['GnuPG keys', gpgKeysKind, {}],
])('the same of %s', (_, kind, content) => {
  const object = { metadata: { name: 'x', annotations: { ...marks, ...options, note: 'x' } }, ...content };
  const copy = newCopy(kind as typeof appProjectKind, object as never, { namespace: 'argocd', name: 'x' }, {});
  expect(copy.metadata.annotations).toEqual({ note: 'x' });
});

test('a mirror is no part of an Application of the cluster, nor of the hub', async () => {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  principal.connect();
  const metadata = {
    uid: 'u',
    resourceVersion: '1',
    labels: { [label]: 'root', [configuredLabel]: 'root', team: 'a' },
    annotations: { ...marks, ...options, note: 'x' },
  };
  principal.receive(incoming('create', ownApplication(metadata)));
  await lab.run(1_000);
  expect(principal.mirror()?.metadata.labels).toEqual({ team: 'a' });
  expect(Object.keys(principal.mirror()?.metadata.annotations ?? {})).not.toContain(tracking);
  for (const key of [annotations.installationId, ...Object.keys(options)]) {
    expect(Object.keys(principal.mirror()?.metadata.annotations ?? {})).not.toContain(key);
  }
  expect(principal.mirror()?.metadata.annotations).toMatchObject({ note: 'x' });
});

test('long names are cut as Argo CD cuts them', () => {
  const names = new InstanceNames();
  const name = `${'a'.repeat(62)}-b`;
  names.count({ namespace: 'argocd', name }, 1);
  expect(names.has('a'.repeat(62))).toBe(true);
  names.count({ namespace: 'argocd', name }, -1);
  expect(names.has('a'.repeat(62))).toBe(false);
  const object = { metadata: { name: 'x', labels: { team: 'a' } } };
  expect(
    withoutOwner(object, () => true),
    'nothing is copied without need',
  ).toBe(object);
});
