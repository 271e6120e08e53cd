import { afterAll, beforeAll, expect, test } from 'vitest';
import { installCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { type KubeObject, namespaces, type PodTemplate, pods } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { deliverableCrd } from '../hub/index.ts';
import { argoCD, input, operator } from '../testing/render-input.ts';
import { noConfig, parseAddOnConfig } from './addon-config.ts';
import { renderCleanUp } from './cleanup.ts';
import { describe, workLimit } from './pack.ts';
import { allManifests, type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
/** The CRDs that Argo CD publishes, for delivery. */
const crds = (await publishedCrds('argocd')).map(deliverableCrd);
const operatorCrds = [...crds, ...(await publishedCrds('argocd-operator')).map(deliverableCrd)];

const everything = parseAddOnConfig({
  metadata: { namespace: 'c1', name: 'everything' },
  spec: {
    agentInstallNamespace: 'gitops',
    nodePlacement: { nodeSelector: { role: 'infra' }, tolerations: [{ key: 'infra', operator: 'Exists' }] },
    registries: [{ source: 'quay.io', mirror: 'mirror.local:5000/quay' }],
    proxyConfig: {
      httpProxy: 'http://proxy:3128',
      httpsProxy: 'http://proxy:3128',
      noProxy: '10.0.0.0/8',
      caBundle: Buffer.from('-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n').toString('base64'),
    },
    resourceRequirements: [
      { containerID: '*:*:*', resources: { requests: { cpu: '10m' }, limits: { memory: '256Mi' } } },
    ],
  },
}).value;

const flavours: Record<string, Partial<RenderInput>> = {
  Install: { argoCD: { ...argoCD, crds } },
  Existing: { argoCD: undefined },
  Operator: { argoCD: undefined, operator: { ...operator, crds: operatorCrds } },
};
const cases = Object.keys(flavours).flatMap((flavour) =>
  (['managed', 'autonomous'] as const).flatMap((mode) =>
    [noConfig, everything ?? noConfig].map((config) => ({
      name: `${flavour}, ${mode}, ${config === noConfig ? 'without' : 'with'} settings`,
      from: { ...input, ...flavours[flavour], mode, config } as RenderInput,
    })),
  ),
);

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'managed' });
  await installCrds(cluster.client, operatorCrds);
  for (const name of ['argocd', 'argocd-operator-system', 'argocd-agent-addon-cleanup']) {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await cluster.client.apply(namespaces, { metadata: { name, labels } }, { fieldManager: 'test', force: true });
  }
});
afterAll(async () => {
  await cluster?.stop();
});

/** Why the API server refuses an object in a dry run; undefined when it accepts the object. */
async function refusal(object: KubeObject): Promise<string | undefined> {
  const type = await cluster.client.resolve(object.apiVersion ?? '', object.kind ?? '');
  const { namespace, name } = object.metadata;
  if (!type) {
    return `${describe(object)}: the API server has no such kind`;
  }
  const base = type.group === '' ? '/api/v1' : `/apis/${type.group}/${type.version}`;
  const path = `${base}${namespace ? `/namespaces/${namespace}` : ''}/${type.plural}/${name}`;
  try {
    const query = 'fieldManager=test&force=true&fieldValidation=Strict&dryRun=All';
    const response = await cluster.client.request(`${path}?${query}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: JSON.stringify(object),
    });
    await response.body.text();
    return undefined;
  } catch (error) {
    return `${describe(object)}: ${(error as Error).message}`;
  }
}

/** Why Pod Security admission would refuse the pods of a workload. */
async function podRefusal(object: KubeObject): Promise<string | undefined> {
  const { template } = (object as { spec?: { template?: PodTemplate } }).spec ?? {};
  if (template?.spec === undefined) {
    return undefined;
  }
  // Service accounts do not exist here and are not under test.
  const { serviceAccountName: _, ...spec } = template.spec;
  const metadata = { namespace: object.metadata.namespace ?? '', name: object.metadata.name };
  try {
    await cluster.client.request(`/api/v1/namespaces/${metadata.namespace}/${pods.plural}?dryRun=All`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec, restartPolicy: 'Never' } }),
    });
    return undefined;
  } catch (error) {
    return `the pod of ${describe(object)}: ${(error as Error).message}`;
  }
}

test("Argo CD's own CRDs fit into one work", () => {
  const delivered = crds.filter(({ spec }) => spec?.names.kind !== 'ApplicationSet');
  const works = renderWorks(templates, { ...input, argoCD: { ...argoCD, crds: delivered } });
  expect(works.map(({ part }) => part)).toEqual(['crds', 'argocd', 'agent']);
  for (const { spec } of works) {
    expect(JSON.stringify(spec.workload).length).toBeLessThan(workLimit);
  }
});

test.each(cases)('a real API server accepts every manifest of $name', async ({ from }) => {
  const works = renderWorks(templates, from);
  const onlyRead = works.flatMap(({ spec }) =>
    (spec.manifestConfigs ?? [])
      .filter(({ updateStrategy }) => updateStrategy?.type === 'ReadOnly')
      .map(({ resourceIdentifier }) => resourceIdentifier.name),
  );
  const refused: (string | undefined)[] = [];
  for (const object of allManifests(works)) {
    if (onlyRead.includes(object.metadata.name)) {
      continue;
    }
    refused.push(await refusal(object), await podRefusal(object));
  }
  expect(refused.filter(Boolean)).toEqual([]);
});

test.each([noConfig, everything ?? noConfig])('a real API server accepts the clean-up', async (config) => {
  const { workload } = renderCleanUp(templates, {
    namespace: 'argocd',
    image: 'agent:1',
    pullPolicy: 'Always',
    config,
  });
  const refused: (string | undefined)[] = [];
  for (const object of workload.manifests) {
    refused.push(await refusal(object), await podRefusal(object));
  }
  expect(refused.filter(Boolean)).toEqual([]);
});

test('a pod with too many privileges is refused here', async () => {
  const containers = [{ name: 'c', image: 'x', securityContext: { privileged: true } }];
  const metadata = { namespace: 'argocd', name: 'x' };
  const object = { kind: 'Deployment', metadata, spec: { template: { spec: { containers } } } } as KubeObject;
  expect(await podRefusal(object)).toMatch(/violates PodSecurity/);
});
