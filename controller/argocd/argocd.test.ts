import { expect, test } from 'vitest';
import type { ConfigMap } from '../../lib/kube/index.ts';
import { argoCdParamsName, keys } from '../hub/index.ts';
import { commandsFor, parametersCondition } from './condition.ts';
import { checksumFor } from './configure.ts';
import { ownerOf } from './owner.ts';
import { readParameter, serverAmong, type Workload } from './parameters.ts';
import { configuredParametersOf, planParameters } from './plan.ts';
import { keyPrefixRequirement, namespacesRequirement, redisRequirement, sentinelRequirement } from './requirements.ts';
import { shellWord } from './shell.ts';

const namespace = 'argocd';
const proxy = 'argocd-agent-redis-proxy:6379';
const redis = redisRequirement(namespace, 'argocd-redis:6379');
const inClusters = namespacesRequirement(['cluster1', 'cluster2']);

const variables = { 'redis.server': 'REDIS_SERVER', 'application.namespaces': 'ARGOCD_APPLICATION_NAMESPACES' };
const fromParams = (...read: (keyof typeof variables)[]) =>
  read.map((key) => ({
    name: variables[key],
    valueFrom: { configMapKeyRef: { name: argoCdParamsName, key, optional: true } },
  }));
function workload(name: string, container: object, kind = 'Deployment', metadata: object = {}): Workload {
  const spec = { template: { spec: { containers: [{ name, ...container }] } } };
  return { kind, metadata: { namespace, name, ...metadata }, spec };
}
const server = workload('argocd-server', { env: fromParams('redis.server', 'application.namespaces') });
const repoServer = workload('argocd-repo-server', { env: fromParams('redis.server') });
const dex = workload('argocd-dex-server', {});
const controller = workload('argocd-application-controller', { env: fromParams('redis.server') }, 'StatefulSet');
const params = (data?: Record<string, string>, metadata: object = {}): ConfigMap => ({
  metadata: { namespace, name: argoCdParamsName, ...metadata },
  ...(data && { data }),
});

const state = {
  namespace,
  requirements: [redis],
  params: params(),
  server,
  workloads: [server, repoServer, dex, controller],
  owner: undefined,
  isConsented: false,
};

test('a parameter is read as Argo CD reads it: from the flag, the environment, the ConfigMap, or its default', () => {
  const read = (container: object, data?: Record<string, string>) =>
    readParameter(workload('s', container), 'redis.server', params(data));
  const env = fromParams('redis.server');
  expect(read({ env })).toEqual({ value: 'argocd-redis:6379', from: 'params' });
  expect(read({ env }, { 'redis.server': proxy })).toEqual({ value: proxy, from: 'params' });
  expect(read({ env, args: ['--redis', 'a:1'] }, { 'redis.server': proxy })).toEqual({ value: 'a:1', from: 'flag' });
  expect(read({ command: ['argocd-server', '--redis=b:2'] })).toEqual({ value: 'b:2', from: 'flag' });
  expect(read({ env: [{ name: 'REDIS_SERVER', value: proxy }] })).toEqual({ value: proxy, from: 'variable' });
  expect(read({})).toEqual({ value: 'argocd-redis:6379', from: 'variable' });
  const other = { name: 'REDIS_SERVER', valueFrom: { configMapKeyRef: { name: 'mine', key: 'redis.server' } } };
  expect(read({ env: [other] }, { 'redis.server': proxy })).toEqual({ value: 'argocd-redis:6379', from: 'variable' });
});

test('the server is found by its name, or by its component if a chart or an operator has named it', () => {
  const labels = { 'app.kubernetes.io/component': 'server' };
  const operated = workload('openshift-gitops-server', {}, 'Deployment', { labels });
  expect(serverAmong([dex, repoServer, server])).toBe(server);
  expect(serverAmong([dex, operated])).toBe(operated);
  expect(serverAmong([dex, repoServer])).toBeUndefined();
});

test('addresses of the proxy and of the Redis behind it are compared as they are resolved', () => {
  const host = 'argocd-agent-redis-proxy';
  for (const same of [
    proxy,
    host,
    `${host}.argocd:6379`,
    `${host}.argocd.svc:6379`,
    `${host}.argocd.svc.cluster.local.:6379`,
  ]) {
    expect(redis.fits(same), same).toBe(true);
  }
  for (const other of [
    `${host}:6380`,
    `${host}.other.svc:6379`,
    `${host}.argocd.example.com:6379`,
    'argocd-redis:6379',
  ]) {
    expect(redis.fits(other), other).toBe(false);
  }
  expect(redis.mayReplace('argocd-redis.argocd.svc:6379')).toBe(true);
  expect(redis.mayReplace('argocd-redis-ha-haproxy:6379')).toBe(false);
});

test('namespaces are served by globs and regular expressions', () => {
  expect(['*', 'cluster?', 'cluster1, cluster2', '/^cluster\\d$/'].filter(inClusters.fits)).toHaveLength(4);
  expect(['', 'cluster1', 'team-*'].filter(inClusters.fits)).toEqual([]);
  expect(['', ' ', 'team-*'].filter(inClusters.mayReplace)).toEqual(['', ' ']);
});

test('what is not set, or set to what the proxy forwards to, is set and remembered', () => {
  const configured = { 'redis.server': { set: proxy, before: null } };
  expect(planParameters({}, {}, [redis])).toEqual({ data: { 'redis.server': proxy }, configured });
  expect(planParameters({ 'redis.server': proxy }, configured, [redis])).toEqual({ data: {}, configured });
  const before = { 'redis.server': { set: proxy, before: 'argocd-redis:6379' } };
  expect(planParameters({ 'redis.server': 'argocd-redis:6379' }, {}, [redis]).configured).toEqual(before);
  // Somebody puts back the default: what was there before is not forgotten.
  expect(planParameters({ 'redis.server': 'argocd-redis:6379' }, configured, [redis])).toEqual({
    data: { 'redis.server': proxy },
    configured,
  });
});

test("Argo CD's default stays if the proxy forwards to another Redis, as any value does that is in use", () => {
  const elsewhere = redisRequirement(namespace, 'mine:6379');
  expect(planParameters({}, {}, [elsewhere])).toEqual({ data: {}, configured: {} });
  expect(planParameters({ 'redis.server': 'mine:6379' }, {}, [elsewhere]).data).toEqual({ 'redis.server': proxy });
  expect(parametersCondition({ ...state, requirements: [elsewhere], isConsented: true })?.message).toMatch(
    /is not set, .* The proxy forwards to "mine:6379": if Argo CD's Redis is "argocd-redis:6379", first set /,
  );
});

test("a value of the user's is neither replaced nor given back", () => {
  const configured = { 'redis.server': { set: proxy, before: null } };
  const nothing = { data: {}, configured: {} };
  expect(planParameters({ 'redis.server': 'mine:6379' }, {}, [redis])).toEqual(nothing);
  expect(planParameters({ 'redis.server': proxy }, {}, [redis])).toEqual(nothing);
  expect(planParameters({ 'redis.server': 'mine:6379' }, configured, [redis])).toEqual(nothing);
  expect(planParameters({ 'redis.server': 'mine:6379' }, configured, [])).toEqual(nothing);
});

test('what is no longer required is given back, and nothing else', () => {
  const configured = {
    'redis.server': { set: proxy, before: 'argocd-redis:6379' },
    'application.namespaces': { set: '*', before: null },
  };
  const data = { 'redis.server': proxy, 'application.namespaces': '*', 'server.insecure': 'true' };
  expect(planParameters(data, configured, [])).toEqual({
    data: { 'redis.server': 'argocd-redis:6379', 'application.namespaces': null },
    configured: {},
  });
  expect(planParameters(data, configured, [redis])).toEqual({
    data: { 'application.namespaces': null },
    configured: { 'redis.server': configured['redis.server'] },
  });
});

test.each(['', 'x', '[]', '{"redis.server":1}', '{"server.insecure":{"set":"a","before":null}}'])(
  'an annotation that the controller has not written counts as nothing: %j',
  (text) => {
    expect(configuredParametersOf(params({}, { annotations: { [keys.configuredParams]: text } }))).toEqual({});
  },
);

test('the checksum of a program follows what it reads, and nothing else', () => {
  const both = { 'redis.server': { set: proxy, before: null }, 'application.namespaces': { set: '*', before: null } };
  const { 'redis.server': one } = both;
  expect(checksumFor(dex, both)).toBeUndefined();
  expect(checksumFor(repoServer, both)).toBe(checksumFor(repoServer, { 'redis.server': { ...one, before: 'x' } }));
  expect(checksumFor(server, both)).not.toBe(checksumFor(server, { 'redis.server': one }));
  expect(checksumFor(server, {})).toBeUndefined();
});

test('without consent the condition has the whole command', () => {
  expect(parametersCondition(state)).toEqual({
    status: 'False',
    reason: 'HubArgoCDNotConfigured',
    message: `the UI shows no resource trees of the clusters: redis.server in ConfigMap argocd/${argoCdParamsName} is not set, it must be "${proxy}". Set the chart's value hubArgoCD.configure to true, or run: kubectl -n argocd patch configmap ${argoCdParamsName} --type merge -p '{"data":{"redis.server":"${proxy}"}}' && kubectl -n argocd rollout restart deployment/argocd-repo-server deployment/argocd-server statefulset/argocd-application-controller`,
  });
  expect(parametersCondition({ ...state, params: params({ 'redis.server': proxy }) })).toMatchObject({
    status: 'True',
  });
  expect(parametersCondition({ ...state, requirements: [] })).toBeUndefined();
  const values = { 'redis.server': proxy, 'application.namespaces': '*' };
  expect(commandsFor(namespace, undefined, values, [server])).toBe(
    `kubectl -n argocd create configmap ${argoCdParamsName} --from-literal=redis.server=${proxy} --from-literal='application.namespaces=*' && kubectl -n argocd rollout restart deployment/argocd-server`,
  );
});

test('with consent, what waits for the principal is said', () => {
  expect(parametersCondition({ ...state, isConsented: true })).toMatchObject({
    status: 'False',
    reason: 'InProgress',
    message: expect.stringMatching(/is not set, .* The controller sets it when the principal is ready$/),
  });
});

test("a value of the user's is named with the one that is needed, and what to think of first", () => {
  const own = { ...state, params: params({ 'redis.server': 'mine:6379' }), isConsented: true };
  expect(parametersCondition(own)?.message).toMatch(
    /is "mine:6379", it must be "argocd-agent-redis-proxy:6379"\. The controller does not replace a value of yours\. The proxy forwards to "argocd-redis:6379": if Argo CD's Redis is "mine:6379", first set the chart's value principal\.redis\.server\.address to it\. Run: kubectl -n argocd patch /,
  );
  const some = { ...state, requirements: [inClusters], params: params({ 'application.namespaces': 'cluster1' }) };
  expect(parametersCondition(some)?.message).toMatch(
    /^the UI does not show the Applications in the clusters' namespaces: .* is "cluster1", it must be "\*"\. It leaves out \[cluster2\]\. .* Run: kubectl -n argocd patch .*'\{"data":\{"application\.namespaces":"\*"\}\}' && kubectl -n argocd rollout restart deployment\/argocd-server$/,
  );
});

test('a program with a setting of its own is named', () => {
  const configured = (container: object) => {
    const one = workload('argocd-server', container);
    return parametersCondition({ ...state, server: one, workloads: [one] })?.message;
  };
  expect(configured({ env: [{ name: 'REDIS_SERVER', value: 'a:1' }] })).toMatch(
    /: variable REDIS_SERVER of deployment\/argocd-server is "a:1", .*\. Run: kubectl -n argocd set env deployment\/argocd-server REDIS_SERVER=argocd-agent-redis-proxy:6379$/,
  );
  expect(configured({ args: ['--redis=a:1'] })).toMatch(
    /: flag --redis of deployment\/argocd-server is "a:1", .*\. Remove flag --redis from deployment\/argocd-server, or give it the value "argocd-agent-redis-proxy:6379"$/,
  );
});

const owned = [
  [
    'argocd-operator',
    { ownerReferences: [{ apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', name: 'gitops', uid: 'u' }] },
    /ArgoCD argocd\/gitops of argocd-operator would put back .* so set it in the ArgoCD \(the operator then removes its own Redis: .*\): kubectl -n argocd patch argocds\.argoproj\.io gitops --type merge -p '\{"spec":\{"redis":\{"remote":"argocd-agent-redis-proxy:6379"\},"sourceNamespaces":\["\*"\]\}\}'$/,
  ],
  [
    'Helm',
    {
      labels: { 'app.kubernetes.io/managed-by': 'Helm', 'app.kubernetes.io/instance': 'cd' },
      annotations: { 'meta.helm.sh/release-name': 'cd', 'meta.helm.sh/release-namespace': 'argocd' },
    },
    /Helm release argocd\/cd would put back .*: helm upgrade cd argo\/argo-cd --namespace argocd --reuse-values --set-string 'configs\.params\.redis\\\.server=argocd-agent-redis-proxy:6379' --set-string 'configs\.params\.application\\\.namespaces=\*'$/,
  ],
  [
    'Argo CD',
    { annotations: { 'argocd.argoproj.io/tracking-id': 'argocd_self:/ConfigMap:argocd/argocd-cmd-params-cm' } },
    /Argo CD's Application argocd\/self would put back .* configs\.params of the chart argo-cd: \{"redis\.server":"argocd-agent-redis-proxy:6379","application\.namespaces":"\*"\}$/,
  ],
  ['Flux', { labels: { 'kustomize.toolkit.fluxcd.io/name': 'infra' } }, /Flux's Kustomization infra would put back /],
] as const;

test.each(owned)('parameters that %s keeps are left to it', (_, metadata, text) => {
  const kept = params({}, metadata);
  const owner = ownerOf(kept, server);
  for (const isConsented of [true, false]) {
    const result = parametersCondition({
      ...state,
      requirements: [redis, inClusters],
      params: kept,
      owner,
      isConsented,
    });
    expect(result).toMatchObject({ status: 'False', message: expect.stringMatching(text) });
  }
});

test('an ArgoCD gives the server its flags, also where it has no ConfigMap', () => {
  const ownerReferences = [{ apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', name: 'gitops', uid: 'u' }];
  const operated = workload(
    'argocd-server',
    { command: ['argocd-server', '--redis', 'gitops-redis:6379'] },
    'Deployment',
    {
      ownerReferences,
    },
  );
  const owner = ownerOf(undefined, operated);
  const result = parametersCondition({ ...state, server: operated, workloads: [operated], params: undefined, owner });
  expect(result?.message).toMatch(
    /^the UI shows .*: flag --redis of deployment\/argocd-server is "gitops-redis:6379", .*patch argocds\.argoproj\.io gitops --type merge -p '\{"spec":\{"redis":\{"remote":"argocd-agent-redis-proxy:6379"\}\}\}'$/,
  );
});

test('what somebody has written into labels does not get into commands', () => {
  const hostile = params({}, { annotations: { 'meta.helm.sh/release-name': "x'; rm -rf / #" } });
  const { message = '' } = parametersCondition({ ...state, params: hostile, owner: ownerOf(hostile, server) }) ?? {};
  expect(message).toContain('a Helm release would put back');
  expect(message).not.toContain('rm -rf');
  expect(ownerOf(params({}, { labels: { 'app.kubernetes.io/managed-by': 'me' } }), server)).toBeUndefined();
  expect(shellWord("a'b")).toBe("'a'\\''b'");
});

const prefixed = (value?: string) => ({
  ...state,
  requirements: [keyPrefixRequirement(value ?? '')],
  server: workload('argocd-server', {
    env: [
      {
        name: 'ARGOCD_REDIS_KEY_PREFIX',
        valueFrom: { configMapKeyRef: { name: argoCdParamsName, key: 'redis.key.prefix', optional: true } },
      },
    ],
  }),
});

test('a prefix of keys in Redis must be the one that the principal has, and nobody replaces it', () => {
  const both = { ...prefixed('fleet:'), params: params({ 'redis.key.prefix': 'fleet:' }) };
  expect(parametersCondition(both)).toMatchObject({ status: 'True' });
  expect(parametersCondition(prefixed())).toMatchObject({ status: 'True' });
  const older = { ...prefixed(), params: params({ 'redis.key.prefix': 'fleet:' }), isConsented: true };
  const said = parametersCondition(older);
  expect(said).toMatchObject({ status: 'False', reason: 'HubArgoCDNotConfigured' });
  expect(said?.message).toMatch(
    /neither resource trees nor information about the clusters: redis\.key\.prefix in ConfigMap argocd\/argocd-cmd-params-cm is "fleet:", it must be ""/,
  );
  expect(said?.message).toMatch(/does not replace a value of yours\. That is the prefix of the principal/);
  // An Argo CD before 3.6 does not read it.
  const unread = { ...state, requirements: [keyPrefixRequirement('fleet:')], params: params({}) };
  expect(parametersCondition(unread)?.message).toMatch(/variable ARGOCD_REDIS_KEY_PREFIX of deployment\/argocd-server/);
});

test('Sentinels, which lead past the proxy, are told of wherever they are set', () => {
  const among = (container: object, data: Record<string, string> = {}) =>
    parametersCondition({
      ...state,
      requirements: [sentinelRequirement()],
      server: workload('argocd-server', container),
      params: params(data),
    });
  expect(among({})).toMatchObject({ status: 'True' });
  expect(among({ args: ['--sentinel', 's:26379'] })?.message).toMatch(
    /Argo CD asks Sentinels .*Remove flag --sentinel from deployment\/argocd-server/,
  );
  const ref = { configMapKeyRef: { name: argoCdParamsName, key: 'redis.sentinel.hosts', optional: true } };
  const env = [{ name: 'REDIS_SENTINEL_HOSTS', valueFrom: ref }];
  expect(among({ env })).toMatchObject({ status: 'True' });
  expect(among({ env }, { 'redis.sentinel.hosts': 's:26379' })?.message).toMatch(
    /redis\.sentinel\.hosts in ConfigMap .* first set the chart's value principal\.redis\.server\.address/,
  );
});

test('argocd-operator, which has no field for some parameters, is told where they are', () => {
  const owner = ownerOf(params({}, { ownerReferences: [{ kind: 'ArgoCD', name: 'gitops' }] as never }), server);
  expect(owner?.advice({ 'redis.sentinel.hosts': '' })).toBe(
    'set redis.sentinel.hosts to "" in the ArgoCD, whose spec.server has env and extraCommandArgs',
  );
  expect(owner?.advice({ 'redis.server': proxy, 'redis.key.prefix': 'a:' })).toMatch(
    /"remote":"argocd-agent-redis-proxy:6379".*; set redis\.key\.prefix to "a:"/,
  );
});
