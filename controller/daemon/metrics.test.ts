import { expect, test } from 'vitest';
import { controllerRegistry } from './index.ts';

test('rollouts and certificates are shown while this process leads', async () => {
  let isLeader = true;
  const registry = controllerRegistry(() =>
    isLeader
      ? {
          stats: () => ({}),
          rollouts: () => [
            { namespace: 'argocd', name: 'fleet', clusters: new Map([['TimeOut', 2]]), isStopped: true },
          ],
          certificates: () => [{ namespace: 'argocd', secret: 'ca', notAfter: new Date(5_000) }],
        }
      : undefined,
  );
  const text = await registry.metrics();
  expect(text).toContain('gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="TimeOut"} 2');
  expect(text).toContain('gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="Waiting"} 0');
  expect(text).toContain('gitops_controller_rollout_stopped{namespace="argocd",name="fleet"} 1');
  expect(text).toContain(
    'gitops_controller_certificate_expiration_timestamp_seconds{namespace="argocd",secret="ca"} 5',
  );
  isLeader = false;
  expect(await registry.metrics()).not.toContain('name="fleet"');
});
