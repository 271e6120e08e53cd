import { expect, test } from 'vitest';
import { KeyedMutex } from '../../lib/base/index.ts';
import { ApiError, type Deployment, type KubeObject, type Secret } from '../../lib/kube/index.ts';
import { RestartRefusedError } from '../argocd/index.ts';
import { restartPrincipal } from './principal-restart.ts';

const namespace = 'argocd';
const original = 'quay.io/argoprojlabs/argocd-agent:v0.9.0';

/** A hub with a principal of this image; a test changes what it has. */
function hubOf(image: string) {
  const template = { metadata: { annotations: {} }, spec: { containers: [{ name: 'principal', image }] } };
  const deployment = { metadata: { namespace, name: 'argocd-agent-principal' }, spec: { template } } as Deployment;
  const hub = {
    certificate: 'one',
    isRefused: false,
    restarts: 0,
    said: [] as string[],
    reconcile: () => restartPrincipal(deps, scope),
  };
  const deps = {
    caches: {
      principalDeployment: () => deployment,
      sharedSecret: () => ({ metadata: { name: 'any' }, data: { 'tls.crt': hub.certificate } }) as Secret,
    },
    applier: { current: async (_: unknown, __: unknown, cached: KubeObject) => cached, wrote: () => undefined },
    client: {
      mergePatch: async (
        _: unknown,
        __: unknown,
        patch: { spec: { template: { metadata: typeof template.metadata } } },
      ) => {
        if (hub.isRefused) {
          throw new ApiError({ status: 403, message: 'no' });
        }
        hub.restarts += 1;
        Object.assign(template.metadata.annotations, patch.spec.template.metadata.annotations);
        return deployment;
      },
    },
    events: { normal: (_: unknown, reason: string) => hub.said.push(reason) },
    mutex: new KeyedMutex(),
  } as unknown as Parameters<typeof restartPrincipal>[0];
  const scope = {
    namespace,
    gitOpsCluster: { metadata: {} },
    signal: AbortSignal.timeout(60_000),
  } as unknown as Parameters<typeof restartPrincipal>[1];
  return hub;
}

test("a principal of argocd-agent's own image is restarted once for each renewal", async () => {
  const hub = hubOf(original);
  await hub.reconcile();
  await hub.reconcile();
  expect(hub.restarts).toBe(1);
  hub.certificate = 'two';
  await hub.reconcile();
  expect(hub.restarts).toBe(2);
  expect(hub.said).toEqual(['PrincipalRestarted', 'PrincipalRestarted']);
});

test("a principal of this project's image is left alone: it follows its certificates", async () => {
  const hub = hubOf('quay.io/open-cluster-management/argocd-fleet:v1');
  await hub.reconcile();
  expect(hub.restarts).toBe(0);
});

test('without the right, the error has the command that does it', async () => {
  const hub = hubOf(original);
  hub.isRefused = true;
  const refused = hub.reconcile();
  await expect(refused).rejects.toBeInstanceOf(RestartRefusedError);
  await expect(refused).rejects.toThrow(
    /run: kubectl -n argocd patch deployment\/argocd-agent-principal --type merge -p '\{"spec":/,
  );
});
