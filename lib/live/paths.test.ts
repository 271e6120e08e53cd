import { expect, test } from 'vitest';
import { isDiscoveryPath, parseResourcePath, resourcePathOf } from './index.ts';

const none = { group: '', version: '', namespace: '', resource: '', name: '', subresource: '' };

test.each([
  ['/api/v1/namespaces', { version: 'v1', resource: 'namespaces' }],
  ['/api/v1/namespaces/foo', { version: 'v1', resource: 'namespaces', name: 'foo' }],
  // argocd-agent's principal takes these for collections in the namespace.
  ['/api/v1/namespaces/foo/status', { version: 'v1', resource: 'namespaces', name: 'foo', subresource: 'status' }],
  ['/api/v1/namespaces/foo/finalize', { version: 'v1', resource: 'namespaces', name: 'foo', subresource: 'finalize' }],
  ['/api/v1/namespaces/foo/pods', { version: 'v1', namespace: 'foo', resource: 'pods' }],
  [
    '/api/v1/namespaces/foo/pods/bar/log',
    { version: 'v1', namespace: 'foo', resource: 'pods', name: 'bar', subresource: 'log' },
  ],
  ['/api/v1/nodes/n1/proxy', { version: 'v1', resource: 'nodes', name: 'n1', subresource: 'proxy' }],
  [
    '/api/v1/namespaces/foo/services/svc:80/proxy',
    { version: 'v1', namespace: 'foo', resource: 'services', name: 'svc:80', subresource: 'proxy' },
  ],
  [
    '/apis/apps/v1/namespaces/foo/deployments/web',
    { group: 'apps', version: 'v1', namespace: 'foo', resource: 'deployments', name: 'web' },
  ],
  [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node',
    { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles', name: 'system:node' },
  ],
])('%s names a resource, and leads back to itself', (path, parts) => {
  expect(parseResourcePath(path)).toEqual({ ...none, ...parts });
  expect(resourcePathOf({ ...none, ...parts })).toBe(path);
});

test('an encoded colon is a colon', () => {
  expect(parseResourcePath('/api/v1/nodes/a%3Ab')?.name).toBe('a:b');
});

test.each([
  '/api/v1/namespaces/foo/pods/../secrets',
  '/api/v1/namespaces/foo/pods/%2e%2e/secrets',
  '/api/v1/namespaces/foo/pods/a%2fb',
  '/api/v1/namespaces/foo/pods/a%252fb',
  '/api/v1/namespaces/foo/pods/a%5cb',
  '/api/v1/namespaces/foo/pods/a\\b',
  '/api/v1/namespaces/foo/pods/%00',
  '/api/v1/namespaces/foo/pods/%ff',
  '/api/v1/namespaces/foo/pods/',
  '/api/v1//pods',
  '//api/v1/pods',
  '/api/v1/./pods',
  '/api/v1/namespaces/../pods/x',
  '/api/v1/namespaces/Foo/pods',
  '/api/v1/pods/a/exec/more',
  '/api/v1/PODS',
  '/api/1/pods',
  '/apis/apps/v1',
  '/apis//v1/pods',
  '/api/v1/watch/pods/x/y/z',
  '/api/v1/watch/configmaps',
  '/apis/apps/v1/watch/deployments',
  '/api/v1/namespaces/foo/watch/pods',
  '/metrics',
  '',
  'api/v1/pods',
])('%s is not a resource', (path) => {
  expect(parseResourcePath(path)).toBeUndefined();
});

test.each([
  '/api',
  '/apis',
  '/api/v1',
  '/api/v1/',
  '/apis/apps',
  '/apis/apps/v1',
  '/version',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/apis/apps/v1',
])('%s asks what there is', (path) => {
  expect(isDiscoveryPath(path)).toBe(true);
  expect(parseResourcePath(path)).toBeUndefined();
});

test.each([
  '/',
  '/api/v1/pods',
  '/apis/apps/v1/deployments',
  '/metrics',
  '/healthz',
  '/openapi/v3/../../api/v1/secrets',
  '/version/x',
  '/logs',
  '/api//',
])('%s asks for more', (path) => {
  expect(isDiscoveryPath(path)).toBe(false);
});

test.each([
  { name: '..' },
  { namespace: 'a/b' },
  { subresource: '../x' },
  { group: 'a/b' },
  { resource: '' },
  { version: '1' },
])('parts that lead elsewhere are refused: %o', (parts) => {
  const good = { ...none, version: 'v1', resource: 'pods', namespace: 'a', name: 'b' };
  expect(() => resourcePathOf({ ...good, ...parts })).toThrow(RangeError);
});
