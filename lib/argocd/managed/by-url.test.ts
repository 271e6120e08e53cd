import { expect, test } from 'vitest';
import { applicationRouter, routingUrl, undecidedApplications } from '../index.ts';
import { hubApplication, Lab, sentMessages } from '../testing/lab.ts';

const ref = { namespace: 'argocd', name: 'shop' };
const resources = 'resources-finalizer.argocd.argoproj.io';
const url = 'https://one';

/** A principal, and agents of clusters whose URLs the test changes. */
function stage(urls: Record<string, string> = { [url]: 'one' }) {
  const lab = new Lab();
  const agents = new Map(Object.entries(urls));
  const options = {
    namespace: 'argocd',
    allowedNamespaces: [],
    mapping: 'destination' as const,
    agentOfUrl: (one: string) => agents.get(one),
  };
  const more = {
    agentOf: applicationRouter(options),
    byUrl: { urlOf: routingUrl, isUndecided: undecidedApplications(options) },
    namespaceOf: (_: string, at: string) => at,
  };
  const start = () => lab.principal(more);
  let principal = start();
  const everywhere = {
    mapping: () => ({ toLocal: (at: string) => at, toHub: (at: string) => at }),
    isAllowed: () => true,
  };
  const one = lab.agent(everywhere);
  const two = lab.agent(everywhere);
  const leave = lab.join(principal, one, 'one');
  lab.join(principal, two, 'two');
  const create = (server = url) =>
    lab.hub.objects.create(
      hubApplication(
        { ...ref, finalizers: [resources] },
        { spec: { project: 'default', destination: { server, namespace: 'shop' } } },
      ),
    );
  return {
    lab,
    one,
    two,
    leave,
    create,
    principal: () => principal,
    /** A cluster Secret came, went or changed. */
    means: async (of: string, agent: string | undefined) => {
      const settle = principal.applications.reroute(of);
      if (agent === undefined) {
        agents.delete(of);
      } else {
        agents.set(of, agent);
      }
      settle();
      await lab.run(60_000);
    },
    /** The principal restarts, and both agents connect again. */
    restart: () => {
      leave();
      principal.stop.abort();
      principal = start();
      lab.join(principal, one, 'one');
    },
  };
}

/** Stands for Argo CD on a cluster: what an Application with its finalizer leaves, it would remove. */
const isGoing = (agent: ReturnType<Lab['agent']>) => {
  const copy = agent.copy('shop');
  return copy === undefined || copy.metadata.deletionTimestamp !== undefined;
};

test('an Application goes to the agent of the cluster with its URL, and deploys to the cluster itself', async () => {
  const { lab, one, two, create } = stage();
  create();
  await lab.run(5_000);
  expect(one.copy()?.spec.destination).toEqual({ name: 'in-cluster', namespace: 'shop' });
  expect(two.copy()).toBeUndefined();
  one.cluster.objects.patch(ref, { status: { health: { status: 'Healthy' } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)).toMatchObject({
    spec: { destination: { server: url } },
    status: { health: { status: 'Healthy' } },
  });
});

test('the Secret may come later than the Application', async () => {
  const { lab, one, create, means } = stage({});
  create();
  await lab.run(5_000);
  expect(one.copy()).toBeUndefined();
  await means(url, 'one');
  expect(one.copy()).toBeDefined();
});

test('a Secret that goes and is back deletes nothing, and what was edited meanwhile arrives then', async () => {
  const { lab, one, create, means } = stage();
  create();
  await lab.run(5_000);
  const uid = one.copy()?.metadata.uid;
  await means(url, undefined);
  lab.hub.objects.patch(ref, { spec: { source: { path: 'p1' } } });
  one.cluster.objects.patch(ref, { status: { health: { status: 'Degraded' } } });
  await lab.run(60_000);
  expect(one.copy()).toMatchObject({ metadata: { uid } });
  expect(one.copy()?.metadata.deletionTimestamp).toBeUndefined();
  expect(one.copy()?.spec.source).not.toEqual({ path: 'p1' });
  await means(url, 'one');
  expect(one.copy()).toMatchObject({ metadata: { uid }, spec: { source: { path: 'p1' } } });
  expect(lab.hub.objects.get(ref)?.status?.health?.status, 'nor is a report lost').toBe('Degraded');
});

test('a Secret that is gone when the principal restarts deletes nothing either', async () => {
  const { lab, one, create, means, restart, principal } = stage();
  create();
  await lab.run(5_000);
  const uid = one.copy()?.metadata.uid;
  await means(url, undefined);
  restart();
  await lab.run(120_000);
  expect(one.copy()).toMatchObject({ metadata: { uid } });
  expect(isGoing(one)).toBe(false);
  expect(sentMessages(principal(), 'delete')).toEqual([]);
  await means(url, 'two');
  expect(isGoing(one), 'now it is known to be the other cluster’s').toBe(true);
});

test('a URL that another cluster gets moves the Application, as an edit does', async () => {
  const { lab, one, two, create, means } = stage();
  create();
  await lab.run(5_000);
  await means(url, 'two');
  expect([isGoing(one), two.copy()?.spec.destination]).toEqual([true, { name: 'in-cluster', namespace: 'shop' }]);
});

test('while several Secrets have the URL, nobody gets anything new, and the one that has a copy keeps it', async () => {
  const { lab, one, two, create, means } = stage();
  create();
  await lab.run(5_000);
  await means(url, undefined);
  lab.hub.objects.patch(ref, { spec: { source: { path: 'p1' } } });
  await lab.run(5_000);
  expect([isGoing(one), two.copy()]).toEqual([false, undefined]);
  expect(one.copy()?.spec.source).not.toEqual({ path: 'p1' });
  await means(url, 'two');
  expect([isGoing(one), two.copy()?.spec.source]).toEqual([true, { path: 'p1' }]);
});

test('an edit to a URL that no Secret has deletes nothing until its cluster is known', async () => {
  const { lab, one, two, create, means } = stage();
  create();
  await lab.run(5_000);
  lab.hub.objects.patch(ref, { spec: { destination: { server: 'https://later' } } });
  await lab.run(60_000);
  expect(isGoing(one)).toBe(false);
  await means('https://later', 'two');
  expect([isGoing(one), isGoing(two)]).toEqual([true, false]);
});

test('what a user deletes, or turns to the hub itself, leaves the cluster that kept it', async () => {
  for (const patch of [{ spec: { destination: { server: 'https://kubernetes.default.svc' } } }, undefined]) {
    const { lab, one, create, means } = stage();
    create();
    await lab.run(5_000);
    await means(url, undefined);
    if (patch === undefined) {
      const { uid = '' } = lab.hub.objects.get(ref)?.metadata ?? {};
      lab.hub.objects.delete(ref, { uid, propagation: 'Background' });
    } else {
      lab.hub.objects.patch(ref, patch);
    }
    await lab.run(60_000);
    expect(isGoing(one)).toBe(true);
  }
});

test('only the Applications with the URL are judged again', async () => {
  const { lab, principal, create, means } = stage();
  create();
  lab.hub.objects.create(
    hubApplication(
      { ...ref, name: 'other' },
      { spec: { project: 'default', destination: { server: 'https://other' } } },
    ),
  );
  await lab.run(5_000);
  const before = principal().sent.length;
  await means('https://other', 'two');
  expect(
    principal()
      .sent.slice(before)
      .filter(({ target }) => target === 'application'),
  ).toHaveLength(1);
});
