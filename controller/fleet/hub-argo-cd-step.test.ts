import { expect, test } from 'vitest';
import type { StatefulSet } from '../../lib/kube/index.ts';
import type { FleetDeps } from './fleet-deps.ts';
import { checkHubArgoCd } from './hub-argo-cd-step.ts';

function check(...controllers: { image?: string; replicas?: number }[]) {
  const found = controllers.map(
    ({ image, replicas }): StatefulSet => ({
      metadata: { namespace: 'argocd', name: 'argocd-application-controller' },
      spec: {
        ...(replicas === undefined ? {} : { replicas }),
        template: { spec: { containers: image === undefined ? [] : [{ name: 'controller', image }] } },
      },
    }),
  );
  const caches = { applicationControllers: () => found } as unknown as FleetDeps['caches'];
  return checkHubArgoCd({ caches }, { namespace: 'argocd' }).result;
}

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
