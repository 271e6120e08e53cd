import { expect, test } from 'vitest';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { type AddOnConfig, noConfig, parseAddOnConfig } from './addon-config.ts';
import { cleanedNamespaces, cleanUpState, renderCleanUp } from './cleanup.ts';

const templates = new Templates();
const input = { namespace: 'gitops', image: 'quay.io/x/fleet:1', pullPolicy: 'Always', config: noConfig };
const jobOf = (spec: ManifestWork['spec']) => {
  const job = spec.workload.manifests.find(({ kind }) => kind === 'Job');
  return job as KubeObject & { spec: { template: { spec: PodSpec } } };
};

test('the clean-up runs our image against the namespace of Argo CD, in its own namespace', () => {
  const spec = renderCleanUp(templates, input);
  const job = jobOf(spec);
  const [container] = job.spec.template.spec.containers;
  expect(container).toMatchObject({
    image: 'quay.io/x/fleet:1',
    imagePullPolicy: 'Always',
    command: ['gitops-controller'],
    args: ['--mode=cleanup'],
    env: [{ name: 'ARGOCD_NAMESPACE', value: 'gitops' }],
  });
  const placed = spec.workload.manifests.filter(({ metadata }) => metadata.namespace !== undefined);
  expect(new Set(placed.map(({ metadata }) => metadata.namespace))).toEqual(new Set([job.metadata.namespace]));
  expect(spec.workload.manifests.find(({ kind }) => kind === 'Namespace')?.metadata.name).toBe(job.metadata.namespace);
  expect(spec.deleteOption).toBeUndefined();
});

test('every namespace that the add-on has used is cleaned up, and no other one may be changed', () => {
  const otherNamespaces = ['argocd-operator-system', 'gitops', 'former'];
  const spec = renderCleanUp(templates, { ...input, otherNamespaces });
  const [container] = jobOf(spec).spec.template.spec.containers;
  expect(container?.env).toEqual([
    { name: 'ARGOCD_NAMESPACE', value: 'gitops' },
    { name: 'CLEANUP_NAMESPACES', value: 'argocd-operator-system,former' },
  ]);
  expect(cleanedNamespaces({ spec })).toEqual(['gitops', 'argocd-operator-system', 'former']);
  const role = spec.workload.manifests.find(({ kind }) => kind === 'ClusterRole') as KubeObject & {
    rules: { resources: string[]; verbs: string[]; resourceNames?: string[] }[];
  };
  const onNamespaces = role.rules.filter(({ resources }) => resources.includes('namespaces'));
  expect(onNamespaces.map(({ resourceNames }) => resourceNames)).toEqual([
    ['gitops', 'argocd-operator-system', 'former'],
  ]);
});

test('ocm defect M11: the clean-up has no more rights than it needs: none to create, and to change only what it removes', () => {
  const { manifests } = renderCleanUp(templates, input).workload;
  const of = <T>(suffix: string) => manifests.filter(({ kind }) => kind?.endsWith(suffix)) as (KubeObject & T)[];
  const roles = of<{ rules: { resources: string[]; verbs: string[] }[] }>('Role');
  const rules = roles.flatMap((role) => role.rules);
  const reads = new Set(['get', 'list', 'watch']);
  const changed = rules.filter(({ verbs }) => verbs.some((verb) => !reads.has(verb)));
  expect(new Set(changed.flatMap(({ resources }) => resources))).toEqual(
    new Set(['applications', 'appprojects', 'namespaces']),
  );
  expect(new Set(rules.flatMap(({ verbs }) => verbs))).toEqual(new Set(['get', 'list', 'patch', 'delete']));
  expect(rules.flatMap(({ resources }) => resources)).not.toContain('secrets');
  const bindings = of<{ roleRef: { name: string } }>('RoleBinding');
  expect(bindings.map(({ roleRef }) => roleRef.name)).toEqual(roles.map(({ metadata }) => metadata.name));
});

test('the image comes from a mirror, and the pod is placed like those of the add-on', () => {
  const config = parseAddOnConfig({
    metadata: { name: 'c' },
    spec: {
      registries: [{ source: 'quay.io/x', mirror: 'mirror.example.com/y' }],
      nodePlacement: { tolerations: [{ key: 'infra', operator: 'Exists' }] },
    },
  }).value as AddOnConfig;
  const pod = jobOf(renderCleanUp(templates, { ...input, config })).spec.template.spec;
  expect(pod.containers[0]?.image).toBe('mirror.example.com/y/fleet:1');
  expect(pod.tolerations).toEqual([{ key: 'infra', operator: 'Exists' }]);
});

test('the end of the Job is read from the status feedback', () => {
  const spec = renderCleanUp(templates, input);
  const { namespace, name } = jobOf(spec).metadata;
  expect(spec.manifestConfigs).toMatchObject([
    { resourceIdentifier: { group: 'batch', resource: 'jobs', namespace, name }, feedbackScrapeType: 'Watch' },
  ]);
  const work = (...values: string[]): ManifestWork => ({
    metadata: { name: 'w' },
    spec,
    status: {
      resourceStatus: {
        manifests: [
          { resourceMeta: { ordinal: 0, kind: 'Namespace' }, conditions: [] },
          {
            resourceMeta: { ordinal: 4, kind: 'Job' },
            conditions: [],
            statusFeedback: {
              values: values.map((v) => ({ name: v, fieldValue: { type: 'String', string: 'True' } })),
            },
          },
        ],
      },
    },
  });
  expect(cleanUpState({ metadata: { name: 'w' }, spec })).toBe('running');
  expect(cleanUpState(work())).toBe('running');
  expect(cleanUpState(work('JobComplete'))).toBe('complete');
  expect(cleanUpState(work('JobFailed'))).toBe('failed');
});
