import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../../e2e/testbed/index.ts';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { noConfig } from './addon-config.ts';
import { renderCleanUp } from './cleanup.ts';
import { deliverableCrd } from './crds.ts';
import { describe } from './pack.ts';
import { Templates } from './templates.ts';
import { renderWorks } from './works.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ name: 'managed' });
});
afterAll(async () => {
  await cluster?.stop();
});

const crd: CustomResourceDefinition = {
  metadata: { name: 'applications.argoproj.io' },
  spec: {
    group: 'argoproj.io',
    names: { kind: 'Application', plural: 'applications' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', description: 'x' } },
      },
    ],
  },
};

test('a real API server takes every manifest, without a field that it does not know', async () => {
  const works = renderWorks(new Templates(), {
    namespace: 'argocd',
    mode: 'managed',
    serverAddress: 'principal.example.com',
    serverPort: '443',
    authorities: 'PEM',
    clientCertificate: { certificate: 'C', key: 'K' },
    agentImage: 'agent:1',
    pullPolicy: 'IfNotPresent',
    argoCD: {
      image: 'argocd:1',
      redisImage: 'redis:8',
      redisPassword: 'p',
      serverSecretKey: 's',
      crds: [deliverableCrd(crd)],
    },
    config: noConfig,
  });
  const cleanUp = renderCleanUp(new Templates(), {
    namespace: 'argocd',
    image: 'agent:1',
    pullPolicy: 'IfNotPresent',
    config: noConfig,
  });
  const refused: string[] = [];
  for (const object of [...works.map(({ spec }) => spec), cleanUp].flatMap(({ workload }) => workload.manifests)) {
    const type = await cluster.client.resolve(object.apiVersion ?? '', object.kind ?? '');
    const { namespace, name } = object.metadata;
    if (!type) throw new Error(`the API server has no kind ${object.kind}`);
    const base = type.group === '' ? '/api/v1' : `/apis/${type.group}/${type.version}`;
    const path = `${base}${namespace ? `/namespaces/${namespace}` : ''}/${type.plural}/${name}`;
    try {
      const response = await cluster.client.request(`${path}?fieldManager=test&force=true&fieldValidation=Strict`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/apply-patch+yaml' },
        body: JSON.stringify(object),
      });
      await response.body.text();
    } catch (error) {
      refused.push(`${describe(object)}: ${(error as Error).message}`);
    }
  }
  expect(refused).toEqual([]);
});
