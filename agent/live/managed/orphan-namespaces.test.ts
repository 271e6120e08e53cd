import { expect, test } from 'vitest';
import { orphanNamespaces } from './orphan-namespaces.ts';

const application = (name: string, project: string | undefined, namespace?: string) => ({
  metadata: { name, namespace: 'argocd' },
  spec: {
    ...(project !== undefined && { project }),
    destination: { name: 'in-cluster', ...(namespace !== undefined && { namespace }) },
  },
});

test('Argo CD looks for orphans where an Application deploys whose project asks for it', () => {
  const projects: Record<string, object> = {
    default: { orphanedResources: {} },
    off: {},
    none: { orphanedResources: null },
  };
  const clock = { now: 0 };
  let lists = 0;
  const all = [
    application('a', 'default', 'a'),
    application('b', '', 'b'),
    application('c', undefined, 'c'),
    application('d', 'off', 'd'),
    application('e', 'missing', 'e'),
    application('f', 'none', 'f'),
    application('g', 'default'),
    { ...application('h', 'default'), spec: { destination: { name: 'elsewhere', namespace: 'h' } } },
    {
      ...application('i', 'default'),
      spec: { destination: { server: 'https://kubernetes.default.svc', namespace: 'i' } },
    },
  ];
  const isLooked = orphanNamespaces({
    applications: {
      list: () => {
        lists++;
        return all;
      },
    },
    appProjects: {
      get: ({ namespace, name }) => {
        const spec = namespace === 'argocd' ? projects[name] : undefined;
        return spec && { metadata: { name }, spec };
      },
    },
    namespace: 'argocd',
    now: () => clock.now,
  });
  const looked = () => ['', 'a', 'b', 'c', 'd', 'e', 'f', 'h', 'i', 'argocd'].filter(isLooked);
  expect(looked()).toEqual(['a', 'b', 'c', 'i']);
  expect(lists).toBe(1);
  projects.default = {};
  clock.now += 1_000;
  expect(looked()).toEqual([]);
});
