import { expect, test } from 'vitest';
import { asksToWatch, defaultTracking, instanceOf, parseResourcePath, requirementOf, trackingOf } from './index.ts';

const ask = (method: string, path: string) => {
  const parsed = parseResourcePath(path);
  if (parsed === undefined) {
    throw new Error(`${path} is no resource`);
  }
  return requirementOf({ method, path: parsed });
};

test.each([
  // What argocd-server sends.
  ['GET', '/apis/apps/v1/namespaces/a/deployments/web', 'visible'],
  ['PATCH', '/apis/apps/v1/namespaces/a/deployments/web', 'managed'],
  ['PATCH', '/apis/apps/v1/namespaces/a/deployments/web/status', 'managed'],
  ['DELETE', '/api/v1/namespaces/a/pods/web-1', 'managed'],
  ['POST', '/apis/batch/v1/namespaces/a/jobs', 'destination'],
  ['GET', '/api/v1/namespaces/a/events', 'items'],
  // What argocd-agent refuses, although it belongs to Applications.
  ['GET', '/api/v1/namespaces/a/pods', 'items'],
  ['GET', '/api/v1/pods', 'items'],
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles/reader', 'visible'],
  ['PUT', '/api/v1/namespaces/a/configmaps/settings', 'managed'],
  ['GET', '/apis/apps/v1/namespaces/a/deployments/web/scale', 'visible'],
  ['GET', '/api/v1/namespaces/a', 'visible'],
  ['PATCH', '/api/v1/namespaces/a', 'managed'],
  ['DELETE', '/api/v1/namespaces/a', 'managed'],
  ['PUT', '/api/v1/namespaces/a/finalize', 'managed'],
  ['DELETE', '/api/v1/namespaces/a/events/web.1', 'managed'],
  ['POST', '/api/v1/namespaces/a/pods/web-1/eviction', 'managed'],
  ['POST', '/api/v1/namespaces', 'destination'],
  ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', 'destination'],
  // What kubectl asks before it does something: about the agent itself, and nothing is created.
  ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'nothing'],
  ['POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', 'nothing'],
  ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', 'nothing'],
  ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', 'destination'],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', 'destination'],
  ['POST', '/apis/example.com/v1/selfsubjectaccessreviews', 'destination'],
])('%s %s: %s', (method, path, requirement) => {
  expect(ask(method, path)).toBe(requirement);
});

test.each([
  ['', false],
  ['watch', true],
  ['watch=', true],
  ['watch=true', true],
  ['watch=1', true],
  ['watch=yes', true],
  ['watch=0', false],
  ['watch=FALSE', false],
  ['watch=false&watch=true', false],
  ['watch=true&watch=false', true],
])('the query %j watches: %s, as the API server reads it', (query, expected) => {
  expect(asksToWatch(new URLSearchParams(query))).toBe(expected);
});

test.each([
  ['DELETE', '/api/v1/namespaces/a/pods'],
  ['PATCH', '/api/v1/namespaces/a/pods'],
  ['PUT', '/api/v1/namespaces/a/pods'],
  ['CONNECT', '/api/v1/namespaces/a/pods/x'],
  ['OPTIONS', '/api/v1/namespaces/a/pods/x'],
  ['GET', '/api/v1/nodes/n/proxy'],
  ['GET', '/api/v1/namespaces/a/services/web:80/proxy'],
  ['POST', '/api/v1/namespaces/a/pods/x/portforward'],
  ['POST', '/api/v1/namespaces/a/pods/x/attach'],
  ['POST', '/api/v1/namespaces/a/pods/x/exec'],
  ['POST', '/api/v1/namespaces/a/serviceaccounts/default/token'],
])('%s %s is refused, with a reason', (method, path) => {
  expect(ask(method, path)).toEqual({ refused: expect.stringMatching(/./) });
});

test("Argo CD's ConfigMap defines how objects are marked", () => {
  expect(trackingOf(undefined)).toEqual(defaultTracking);
  expect(trackingOf({ 'application.resourceTrackingMethod': 'label', 'application.instanceLabelKey': 'app' })).toEqual({
    method: 'label',
    labelKey: 'app',
    installationId: '',
  });
  expect(trackingOf({ installationID: 'two' })).toEqual({ ...defaultTracking, installationId: 'two' });
  expect(() => trackingOf({ 'application.resourceTrackingMethod': 'magic' })).toThrow(
    /resourceTrackingMethod.*"magic"/,
  );
});

test.each([
  [{}, 'annotation', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:apps/Deployment:a/web' } }, 'annotation', 'web'],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'team_web:/Service:a/web' } }, 'annotation+label', 'team_web'],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': '' } }, 'annotation', undefined],
  [{ labels: { 'app.kubernetes.io/instance': 'web' } }, 'annotation', undefined],
  [{ labels: { 'app.kubernetes.io/instance': 'web' } }, 'label', 'web'],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:x' } }, 'label', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web' } }, 'annotation', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:apps/Deployment' } }, 'annotation', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:Deployment:a/web' } }, 'annotation', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:apps/Deployment:a/b/c' } }, 'annotation', undefined],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'web:/Role:a/system:web' } }, 'annotation', 'web'],
] as const)('the mark of %o by %s is of %s', (metadata, method, instance) => {
  expect(instanceOf({ metadata }, { ...defaultTracking, method })).toBe(instance);
});

test('the mark of another Argo CD is none', () => {
  const id = 'web:apps/Deployment:a/web';
  const marked = (installation?: string) => ({
    metadata: {
      annotations: {
        'argocd.argoproj.io/tracking-id': id,
        ...(installation === undefined ? {} : { 'argocd.argoproj.io/installation-id': installation }),
      },
    },
  });
  const own = { ...defaultTracking, installationId: 'one' };
  expect(instanceOf(marked('one'), own)).toBe('web');
  expect(instanceOf(marked('two'), own)).toBeUndefined();
  expect(instanceOf(marked(), own)).toBeUndefined();
  expect(instanceOf(marked('two'), defaultTracking)).toBeUndefined();
  expect(instanceOf(marked(''), defaultTracking)).toBe('web');
});
