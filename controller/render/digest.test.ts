import { expect, test } from 'vitest';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { argoCD, input } from '../testing/render-input.ts';
import { renderCleanUp } from './cleanup.ts';
import { type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
const agentImage = `quay.io/example/fleet@${digest}`;

/** The images of all containers and init containers. */
function imagesOf(manifests: readonly KubeObject[]): string[] {
  return manifests.flatMap((object) => {
    const { containers = [], initContainers = [] } =
      (object as { spec?: { template?: { spec?: PodSpec } } }).spec?.template?.spec ?? {};
    return [...containers, ...initContainers].map(({ image = '' }) => image);
  });
}

test('ocm defect M13: images with a digest are delivered unchanged', () => {
  const image = `quay.io/argoproj/argocd@${digest}`;
  const redisImage = `docker.io/library/redis@${digest}`;
  const render = (config: RenderInput['config']) => {
    const desired = { ...input, agentImage, argoCD: { ...argoCD, image, redisImage }, config };
    return [
      ...renderWorks(templates, desired).flatMap(({ spec }) => spec.workload.manifests),
      ...renderCleanUp(templates, { namespace: 'argocd', image: agentImage, pullPolicy: 'Always', config }).workload
        .manifests,
    ];
  };
  expect(new Set(imagesOf(render(input.config)))).toEqual(new Set([agentImage, image, redisImage]));
  const registries = [{ source: 'quay.io', mirror: 'mirror.example.com:5000/quay' }];
  expect(imagesOf(render({ ...input.config, registries }))).toContain(
    `mirror.example.com:5000/quay/example/fleet@${digest}`,
  );
});
