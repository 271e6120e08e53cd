import { expect, describe as suite, test } from 'vitest';
import { idRefusals, podsIn, rootPods } from '../../e2e/hub/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import type { ManagedCluster } from '../hub/index.ts';
import { input, operator } from '../testing/render-input.ts';
import { type AddOnConfig, noConfig, parseAddOnConfig } from './addon-config.ts';
import { renderCleanUp } from './cleanup.ts';
import { allManifests, type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
const plugins = { hello: { spec: { generate: { command: ['hello'] } } } };
const flavours: Record<string, Partial<RenderInput>> = {
  managed: { settings: { plugins } },
  autonomous: { mode: 'autonomous', settings: { plugins } },
  existing: { argoCD: undefined },
  operator: { argoCD: undefined, operator },
};

/** All pods that a cluster gets: with its works, and with the clean-up. */
const podsOf = (config: AddOnConfig, flavour: Partial<RenderInput> = {}) =>
  podsIn('', [
    allManifests(renderWorks(templates, { ...input, ...flavour, config })),
    renderCleanUp(templates, { namespace: 'argocd', image: 'fleet:1', pullPolicy: 'Always', config }),
  ]);

type Claims = NonNullable<ManagedCluster['status']>['clusterClaims'];
const read = (variables: Record<string, string>, clusterClaims?: Claims, annotation?: object) => {
  const customizedVariables = Object.entries(variables).map(([name, value]) => ({ name, value }));
  const annotations = annotation && { 'open-cluster-management.io/image-registries': JSON.stringify(annotation) };
  return parseAddOnConfig(
    { metadata: { namespace: 'c1', name: 'config' }, spec: { customizedVariables } },
    {
      metadata: { name: 'c1', ...(annotations && { annotations }) },
      status: { ...(clusterClaims && { clusterClaims }) },
    },
  );
};
const accepted = (parsed: ReturnType<typeof read>) => {
  expect(parsed.problem).toBeUndefined();
  return parsed.value as AddOnConfig;
};

suite.each(Object.entries(flavours))('the pods of a cluster (%s)', (_, flavour) => {
  test('name no ids but for the images without a user, and none where the cluster assigns them', () => {
    const names = idRefusals(podsOf(noConfig, flavour)).map((text) => text.split(':')[0]);
    const withoutUser = ['Deployment argocd-redis', 'Deployment argocd-repo-server'];
    expect(names.every((name) => withoutUser.includes(name ?? ''))).toBe(true);
    const config = accepted(read({}, [{ name: 'product.open-cluster-management.io', value: 'ROSA' }]));
    expect(idRefusals(podsOf(config, flavour))).toEqual([]);
    expect(
      idRefusals(podsOf(accepted(read({}, [{ name: 'version.openshift.io', value: '4.20.1' }])), flavour)),
    ).toEqual([]);
    expect(rootPods(podsOf(noConfig, flavour))).toEqual([]);
    expect(rootPods(podsOf(config, flavour))).toEqual([]);
  });

  test('have all the pull Secrets that the settings name, and the one of the registries', () => {
    const config = accepted(
      read({ IMAGE_PULL_SECRETS: 'mine, other.registry' }, undefined, {
        pullSecret: 'hub-namespace.secret',
        registries: [{ mirror: 'mirror.example.com' }],
      }),
    );
    const names = ['mine', 'other.registry', 'open-cluster-management-image-pull-credentials'];
    const pods = podsOf(config, flavour);
    expect(pods.length).toBeGreaterThan(1);
    for (const { of, spec } of pods) {
      expect(spec.imagePullSecrets, of).toEqual(names.map((name) => ({ name })));
    }
    for (const { of, spec } of podsOf(noConfig, flavour)) {
      expect(spec.imagePullSecrets, of).toBeUndefined();
    }
  });

  test('have the fields of security contexts that the settings say', () => {
    const config = accepted(
      read({
        POD_SECURITY_CONTEXT: '{"runAsUser": null, "fsGroup": 7}',
        CONTAINER_SECURITY_CONTEXT: '{"readOnlyRootFilesystem": false, "runAsUser": null}',
      }),
    );
    for (const { of, spec } of podsOf(config, flavour)) {
      expect(spec.securityContext, of).toMatchObject({ fsGroup: 7 });
      expect(spec.securityContext, of).not.toHaveProperty('runAsUser');
      for (const { name, securityContext } of [...(spec.initContainers ?? []), ...spec.containers]) {
        expect(securityContext, `${of} ${name}`).toMatchObject({
          readOnlyRootFilesystem: false,
          capabilities: { drop: ['ALL'] },
        });
        expect(securityContext, `${of} ${name}`).not.toHaveProperty('runAsUser');
      }
    }
  });
});

test('a cluster that is not OpenShift keeps the ids, and one with ids of its settings has those', () => {
  const redis = (config: AddOnConfig) =>
    podsOf(config).find(({ of }) => of === 'Deployment argocd-redis')?.spec.securityContext;
  const claims = [
    { name: 'product.open-cluster-management.io', value: 'EKS' },
    { name: 'id.k8s.io', value: 'c1' },
  ];
  expect(redis(accepted(read({}, claims)))).toMatchObject({ runAsUser: 999 });
  const openShift = [{ name: 'version.openshift.io', value: '4.20.1' }];
  expect(redis(accepted(read({ POD_SECURITY_CONTEXT: '{"runAsUser": 999}' }, openShift)))).toMatchObject({
    runAsUser: 999,
    runAsNonRoot: true,
  });
});

test.each([
  [
    { IMAGE_PULL_SECRETS: 'argocd/mine' },
    '[IMAGE_PULL_SECRETS] must be names of Secrets, with commas between them, not "argocd/mine"',
  ],
  [{ IMAGE_PULL_SECRETS: 'a,'.repeat(17) }, '[IMAGE_PULL_SECRETS] must be at most 16 names'],
  [
    { POD_SECURITY_CONTEXT: 'runAsUser: 1' },
    '[POD_SECURITY_CONTEXT] must be JSON such as {"runAsUser": 1000}, not "runAsUser: 1"',
  ],
  [{ POD_SECURITY_CONTEXT: '{"runAsUser": "999"}' }, '[POD_SECURITY_CONTEXT] runAsUser must be a number'],
  [{ POD_SECURITY_CONTEXT: '[]' }, '[POD_SECURITY_CONTEXT] '],
  [{ CONTAINER_SECURITY_CONTEXT: '{"fsGroup": 1}' }, '[CONTAINER_SECURITY_CONTEXT] '],
])('%j is refused', (variables, problem) => {
  expect(read(variables).problem).toContain(`AddOnDeploymentConfig c1/config: spec.customizedVariables${problem}`);
});

test('the namespaces that the add-on makes are those into which OCM copies its pull Secret', () => {
  for (const flavour of Object.values(flavours)) {
    const objects = allManifests(renderWorks(templates, { ...input, ...flavour }));
    for (const { kind, metadata } of objects.filter((one) => one.kind === 'Namespace')) {
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
        'addon.open-cluster-management.io/namespace': 'true',
      });
    }
  }
});

test('a plugin keeps the variables that its settings name, and has the others of the proxy once', () => {
  const own = { name: 'HTTPS_PROXY', value: 'http://own:1' };
  const trust = { name: 'SSL_CERT_DIR', value: '/own' };
  const settings = { plugins: { hello: { ...plugins.hello, env: [own, trust] } } };
  const caBundle = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');
  const spec = { proxyConfig: { httpsProxy: 'http://proxy:3128', caBundle } };
  const config = accepted(parseAddOnConfig({ metadata: { name: 'config' }, spec }));
  const pods = podsOf(config, { settings });
  const container = pods.flatMap(({ spec: { containers } }) => containers).find(({ name }) => name === 'plugin-hello');
  const names = container?.env?.map(({ name }) => name) ?? [];
  expect(names).toContain('NO_PROXY');
  expect(new Set(names).size).toBe(names.length);
  expect(container?.env).toEqual(expect.arrayContaining([own, trust]));
});
