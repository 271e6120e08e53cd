import { expect, test } from 'vitest';
import { parseResourcePath } from '../../../lib/live/index.ts';
import { targetOnCluster } from './request-mapping.ts';

const mirrored = { isAutonomous: (agent: string) => agent === 'edge', namespaceOf: () => 'gitops' };
const asked = (path: string, agent = 'edge') =>
  targetOnCluster({ path, query: 'a=b', resource: parseResourcePath(path), user: undefined }, agent, mirrored);
const pathIn = (namespace: string, resource = 'applications') =>
  `/apis/argoproj.io/v1alpha1/namespaces/${namespace}/${resource}/child`;

test('a child Application of an autonomous agent is asked for where it is on the cluster', () => {
  expect(asked(pathIn('edge'))).toEqual({
    path: pathIn('gitops'),
    query: 'a=b',
    resource: parseResourcePath(pathIn('gitops')),
    user: undefined,
  });
});

test.each([
  [pathIn('argocd'), 'edge'],
  [pathIn('edge', 'appprojects'), 'edge'],
  ['/api/v1/namespaces/edge/pods/web', 'edge'],
  ['/apis/argoproj.io/v1alpha1/applications', 'edge'],
  [pathIn('managed'), 'managed'],
  ['/version', 'edge'],
])('%s of %s is asked for as it is', (path, agent) => {
  expect(asked(path, agent).path).toBe(path);
});
