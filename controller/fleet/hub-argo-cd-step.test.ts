import { expect, test } from 'vitest';
import type { StatefulSet } from '../../lib/kube/index.ts';
import type { FleetDeps } from './fleet-deps.ts';
import { checkDeliveredVersion, checkHubArgoCd, configureHubArgoCd } from './hub-argo-cd-step.ts';

function checkIn(namespace: string, ...controllers: { image?: string; replicas?: number }[]) {
  const found = controllers.map(
    ({ image, replicas }): StatefulSet => ({
      metadata: { namespace: 'argocd', name: 'argocd-application-controller' },
      spec: {
        ...(replicas === undefined ? {} : { replicas }),
        template: { spec: { containers: image === undefined ? [] : [{ name: 'controller', image }] } },
      },
    }),
  );
  const server = { metadata: { namespace: 'argocd', name: 'argocd-server' } };
  const caches = {
    applicationControllers: () => found,
    argoCdWorkloads: (namespace: string) => (namespace === 'argocd' ? [server, ...found] : []),
  } as unknown as FleetDeps['caches'];
  return checkHubArgoCd({ caches }, { namespace }).result;
}

const check = (...controllers: { image?: string; replicas?: number }[]) => checkIn('argocd', ...controllers);

const older =
  /argocd\/argocd-application-controller is of version \d\.\d+ and reconciles the fleet's Applications .*: scale it to 0 replicas .*, or update the hub's Argo CD to 3\.4/;

test.each(['quay.io/argoproj/argocd:v3.3.9', 'r:5000/argocd:2.14.1', 'argocd:v3.2', 'argocd:v3.3.0-rc1@sha256:00ff'])(
  'an application controller before 3.4 reconciles the fleet: %s',
  (image) => {
    const result = check({ image });
    expect(result).toMatchObject({ status: 'False', reason: 'HubReconcilesApplications' });
    expect(result?.message).toMatch(older);
  },
);

test.each(['quay.io/argoproj/argocd:v3.4.0', 'argocd:v3.10.1', 'argocd:4.0.0@sha256:00ff', 'argocd:v3.4.0-rc1'])(
  'one from 3.4 on skips the clusters: %s',
  (image) => expect(check({ image })).toMatchObject({ status: 'True', reason: 'Success' }),
);

test.each(['argocd', 'argocd@sha256:00ff', 'r:5000/argocd', 'argocd:latest', 'r:3.2/argocd', undefined])(
  'a version that is not known is reported: %s',
  (image) => {
    const result = check(image === undefined ? {} : { image });
    expect(result).toMatchObject({ status: 'Unknown', reason: 'VersionUnknown' });
  },
);

test('none, or one without replicas, is well; of several the worst counts', () => {
  expect(check()).toMatchObject({ status: 'True', message: 'The hub runs no application controller of its own' });
  expect(check({ image: 'argocd:v3.2.6', replicas: 0 })).toMatchObject({ status: 'True' });
  expect(check({ image: 'argocd:v3.4.0' }, { image: 'argocd:v3.2.6', replicas: 2 })).toMatchObject({ status: 'False' });
});

test('a hub whose namespace has no Argo CD is well, and says which value leads to one', () => {
  expect(checkIn('gitops')).toEqual({
    status: 'True',
    reason: 'Success',
    message:
      "Namespace gitops of the hub has no Argo CD: set the chart's value global.argoCDNamespace to the namespace that has one, or hubArgoCD.install to true",
  });
});

function delivered(image: string, argoCDAgentAddon: object = {}) {
  const caches = { crd: () => undefined, hubImage: () => image, principalImage: () => undefined };
  const gitOpsCluster = { metadata: { namespace: 'argocd', name: 'fleet' }, spec: { argoCDAgentAddon } };
  const deps = { caches, delivery: { agentImage: 'agent:1' } } as never;
  return checkDeliveredVersion(deps, { namespace: 'argocd', gitOpsCluster: gitOpsCluster as never });
}

test.each(['quay.io/argoproj/argocd:v3.3.0', 'argocd:v3.5.1', 'argocd:v3.6.0-rc1'])('clusters may get %s', (image) => {
  expect(delivered(image)).toMatchObject({ status: 'True' });
});

test('clusters that get an older or a newer Argo CD than is known are reported, with what to do', () => {
  expect(delivered('r:5000/argocd:v3.2.6')).toMatchObject({
    status: 'False',
    reason: 'VersionNotSupported',
    message:
      'the clusters get Argo CD 3.2 (image "r:5000/argocd:v3.2.6"), which is too old; 3.3 to 3.6 are supported: update the hub\'s Argo CD, or set the chart\'s value managedArgoCD.image',
  });
  expect(delivered('argocd:v2.14.1')).toMatchObject({ status: 'False' });
  expect(delivered('argocd:v3.7.0')).toMatchObject({ status: 'Unknown', reason: 'VersionUnknown' });
});

test('nothing is said of an Argo CD whose version is not known, or that the clusters have themselves', () => {
  expect(delivered('argocd@sha256:00ff')).toBeUndefined();
  expect(delivered('argocd:v3.2.6', { argoCD: 'Existing' })).toBeUndefined();
});

/** The condition about a server and a principal that read these parameters of Argo CD when they start. */
async function liveAccess(data: Record<string, string>, reads: { server: string[]; principal: string[] }) {
  const params = {
    metadata: { name: 'argocd-cmd-params-cm' },
    data: { 'redis.server': 'argocd-agent-redis-proxy', ...data },
  };
  const variables: Record<string, string> = {
    'redis.server': 'REDIS_SERVER',
    'redis.key.prefix': 'ARGOCD_REDIS_KEY_PREFIX',
    'redis.sentinel.hosts': 'REDIS_SENTINEL_HOSTS',
  };
  const program = (name: string, keys: string[]) => {
    const env = keys.map((key) => ({
      name: variables[key],
      valueFrom: { configMapKeyRef: { name: 'argocd-cmd-params-cm', key } },
    }));
    return { metadata: { namespace: 'argocd', name }, spec: { template: { spec: { containers: [{ name, env }] } } } };
  };
  const deps = {
    caches: {
      sharing: () => [],
      serviceExposure: () => ({ service: undefined, slices: [] }),
      redisBehindProxy: () => 'argocd-redis:6379',
      argoCdParams: () => params,
      argoCdWorkloads: () => [program('argocd-server', ['redis.server', ...reads.server])],
      principalDeployment: () => program('argocd-agent-principal', reads.principal),
    },
    configuredNamespaces: [],
    ownership: { selectionOf: () => ({ known: false }) },
  } as unknown as FleetDeps;
  const gitOpsCluster = { metadata: { namespace: 'argocd', name: 'fleet', uid: 'u' }, spec: { argoCDAgentAddon: {} } };
  const { signal } = new AbortController();
  return configureHubArgoCd(deps, { namespace: 'argocd', gitOpsCluster: gitOpsCluster as never, signal });
}

test('a prefix of keys in Redis that only one of Argo CD and the principal has is told of, and so are Sentinels', async () => {
  const prefix = ['redis.key.prefix'];
  const data = { 'redis.key.prefix': 'fleet:' };
  expect(await liveAccess(data, { server: prefix, principal: prefix })).toMatchObject({ status: 'True' });
  expect(await liveAccess({}, { server: prefix, principal: [] })).toMatchObject({ status: 'True' });
  for (const reads of [
    { server: prefix, principal: [] },
    { server: [], principal: prefix },
  ]) {
    const said = await liveAccess(data, reads);
    expect(said).toMatchObject({ status: 'False', message: expect.stringContaining('neither resource trees nor') });
  }
  const sentinels = { 'redis.sentinel.hosts': 's:26379' };
  expect(await liveAccess(sentinels, { server: ['redis.sentinel.hosts'], principal: [] })).toMatchObject({
    status: 'False',
    message: expect.stringContaining('asks Sentinels for its Redis'),
  });
});
