import { expect, describe as suite, test } from 'vitest';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { deliverableCrd } from '../hub/index.ts';
import { hubCrd, input } from '../testing/render-input.ts';
import { describe } from './pack.ts';
import { Templates } from './templates.ts';
import { type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
type Workload = KubeObject & { spec: { template: { spec: PodSpec } } };
const allManifests = (from: RenderInput = input) =>
  renderWorks(templates, from).flatMap(({ spec }) => spec.workload.manifests);
const workloadsOf = (from: RenderInput = input) =>
  allManifests(from).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Workload[];
const find = (kind: string, name: string, from: RenderInput = input) =>
  allManifests(from).find((object) => object.kind === kind && object.metadata.name === name) as
    | (KubeObject & { data?: Record<string, string> })
    | undefined;

suite('works of a cluster', () => {
  test('are three, in the order of delivery, and the same input yields the same works', () => {
    const works = renderWorks(templates, input);
    expect(works.map(({ part, index }) => `${part}-${index}`)).toEqual(['crds-0', 'argocd-0', 'agent-0']);
    expect(renderWorks(templates, structuredClone(input))).toEqual(works);
  });

  test('carry no duplicates; every manifest has apiVersion, kind and name, namespaced ones the right namespace', () => {
    for (const { spec } of renderWorks(templates, { ...input, namespace: 'gitops' })) {
      const seen = new Set<string>();
      for (const object of spec.workload.manifests) {
        expect(object.apiVersion && object.kind && object.metadata.name).toBeTruthy();
        if (object.metadata.namespace !== undefined) {
          expect(object.metadata.namespace).toBe('gitops');
        }
        expect(seen).not.toContain(describe(object));
        seen.add(describe(object));
      }
    }
  });

  test('keep the CRDs and the namespace when they are deleted', () => {
    const [crds, argocd, agent] = renderWorks(templates, input);
    expect(crds?.spec.deleteOption).toEqual({ propagationPolicy: 'Orphan' });
    for (const work of [argocd, agent]) {
      expect(work?.spec.deleteOption).toEqual({
        propagationPolicy: 'SelectivelyOrphan',
        selectivelyOrphans: { orphaningRules: [{ group: '', resource: 'namespaces', name: 'argocd' }] },
      });
    }
  });

  test('create the ConfigMap of the GPG keys once: the agent fills it from the hub', () => {
    const configs = renderWorks(templates, input).flatMap(({ spec }) => spec.manifestConfigs ?? []);
    const keys = configs.filter(({ resourceIdentifier: { name } }) => name === 'argocd-gpg-keys-cm');
    expect(keys).toMatchObject([{ updateStrategy: { type: 'CreateOnly' } }]);
  });

  test('request the status of every workload', () => {
    const watched = renderWorks(templates, input).flatMap(({ spec }) =>
      (spec.manifestConfigs ?? []).filter(({ feedbackRules }) => feedbackRules).map((c) => c.resourceIdentifier.name),
    );
    expect(watched.sort()).toEqual(
      workloadsOf()
        .map(({ metadata }) => metadata.name)
        .sort(),
    );
  });

  test('grant the agent the configured rights for live access, each by its own binding', () => {
    const grantsOf = (liveAccess: string) =>
      allManifests({ ...input, liveAccess }).filter(({ metadata: { name } }) => /live-access|agent-agent:/.test(name));
    expect(grantsOf('None')).toEqual([]);
    expect(grantsOf('view').map(describe)).toEqual(['ClusterRoleBinding argocd-agent-agent:view']);
    const [role, binding] = grantsOf('Full') as (KubeObject & { rules?: object[] })[];
    expect(role?.rules).toEqual([
      { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] },
    ]);
    expect(binding).toMatchObject({
      roleRef: { kind: 'ClusterRole', name: 'argocd-agent-live-access' },
      subjects: [{ kind: 'ServiceAccount', name: 'argocd-agent-agent', namespace: 'argocd' }],
    });
  });

  test.each([
    ['managed', true, 'true'],
    ['managed', false, 'false'],
    ['autonomous', true, 'false'],
  ] as const)(
    'map Applications as the principal does: %s, by destination %s',
    (mode, destinationBasedMapping, said) => {
      const params = allManifests({ ...input, mode, destinationBasedMapping }).find(
        ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'argocd-agent-params',
      ) as { data?: Record<string, string> } | undefined;
      expect(params?.data).toMatchObject({
        'agent.destination-based-mapping': said,
        'agent.create-namespace': said,
      });
    },
  );

  test('contain only the agent when the cluster has its own Argo CD', () => {
    const works = renderWorks(templates, { ...input, argoCD: undefined });
    expect(works.map(({ part }) => part)).toEqual(['agent']);
  });

  test('require the CRDs of an existing Argo CD: they are read, never written, and stay', () => {
    const name = 'applications.argoproj.io';
    const [work] = renderWorks(templates, { ...input, argoCD: undefined });
    const identity = { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', name };
    expect(work?.spec.workload.manifests[0]).toEqual({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name },
    });
    const config = work?.spec.manifestConfigs?.find(({ resourceIdentifier }) => resourceIdentifier.name === name);
    expect(config).toEqual({ resourceIdentifier: identity, updateStrategy: { type: 'ReadOnly' } });
    expect(work?.spec.deleteOption?.selectivelyOrphans?.orphaningRules).toContainEqual(identity);
  });
});

suite('the pods', () => {
  test('run without privileges on the node', () => {
    expect(workloadsOf()).toHaveLength(4);
    for (const { metadata, spec } of workloadsOf()) {
      const pod = spec.template.spec;
      for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
        expect(container.securityContext, `${metadata.name}/${container.name}`).toMatchObject({
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        });
      }
      for (const container of pod.containers) {
        expect(container.readinessProbe, container.name).toBeTruthy();
        expect(container.resources, container.name).toBeTruthy();
      }
    }
  });

  test('only mount volumes that exist, and name the ports that Services and probes use', () => {
    for (const { metadata, spec } of workloadsOf()) {
      const pod = spec.template.spec as PodSpec & { volumes?: { name: string }[] };
      const volumes = (pod.volumes ?? []).map(({ name }) => name);
      for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
        for (const { name } of (container.volumeMounts ?? []) as { name: string }[]) {
          expect(volumes, metadata.name).toContain(name);
        }
      }
    }
    const ports = workloadsOf().flatMap(({ spec }) =>
      spec.template.spec.containers.flatMap(({ ports: list }) => (list as { name: string }[]).map(({ name }) => name)),
    );
    for (const service of allManifests().filter(({ kind }) => kind === 'Service')) {
      const { spec } = service as unknown as { spec: { ports: { targetPort: string }[] } };
      for (const { targetPort } of spec.ports) {
        expect(ports).toContain(targetPort);
      }
    }
  });

  test('contain every Secret and ConfigMap that they require', () => {
    for (const { spec } of workloadsOf()) {
      for (const { env } of spec.template.spec.containers) {
        for (const { valueFrom } of env ?? []) {
          const ref = valueFrom as Record<string, { name: string; key: string; optional?: boolean }> | undefined;
          if (ref?.secretKeyRef && !ref.secretKeyRef.optional) {
            expect(find('Secret', ref.secretKeyRef.name)?.data).toHaveProperty(ref.secretKeyRef.key);
          }
        }
      }
    }
  });
});

suite('the agent', () => {
  test('gets the parameters of argocd-pull-integration', () => {
    expect(find('ConfigMap', 'argocd-agent-params')?.data).toMatchObject({
      'agent.server.address': 'principal.example.com',
      'agent.server.port': '443',
      'agent.mode': 'managed',
      'agent.namespace': 'argocd',
      'agent.healthz.port': '8002',
      'agent.destination-based-mapping': 'true',
      'agent.create-namespace': 'true',
    });
    expect(find('ConfigMap', 'argocd-agent-params', { ...input, mode: 'autonomous' })?.data).toMatchObject({
      'agent.mode': 'autonomous',
      'agent.destination-based-mapping': 'false',
    });
  });

  test('restarts when a parameter changes and not when a certificate does', () => {
    const templateOf = (from: RenderInput) =>
      JSON.stringify(workloadsOf(from).find(({ metadata }) => metadata.name === 'argocd-agent-agent')?.spec.template);
    expect(templateOf({ ...input, serverAddress: 'other' })).not.toBe(templateOf(input));
    expect(templateOf({ ...input, clientCertificate: { certificate: 'C2', key: 'K2' }, authorities: 'x' })).toBe(
      templateOf(input),
    );
  });

  test('has certificates only in the Secret of authorities, and a client certificate of type TLS', () => {
    const authorities = find('Secret', 'argocd-agent-ca');
    expect(Object.keys(authorities?.data ?? {})).toEqual(['ca.crt']);
    expect(Buffer.from(authorities?.data?.['ca.crt'] ?? '', 'base64').toString()).toBe(input.authorities);
    const client = find('Secret', 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert');
    expect(client).toMatchObject({ type: 'kubernetes.io/tls' });
    expect(Object.keys(client?.data ?? {})).toEqual(['tls.crt', 'tls.key']);
    const without = { ...input, clientCertificate: undefined };
    expect(find('Secret', client?.metadata.name ?? '', without)).toBeUndefined();
  });

  test('ocm defect M11: has no more rights than it needs', () => {
    const roles = allManifests({ ...input, liveAccess: 'None' }).filter(
      ({ kind, metadata }) => kind?.endsWith('Role') && metadata.name.includes('agent'),
    );
    expect(roles.length).toBeGreaterThan(1);
    expect(JSON.stringify(roles)).not.toContain('"*"');
    // It has no further rights: its bindings refer to these roles only.
    const bindings = allManifests({ ...input, liveAccess: 'None' }).filter(
      ({ kind, metadata }) => kind?.endsWith('RoleBinding') && metadata.name.includes('agent'),
    ) as (KubeObject & { roleRef: { kind: string; name: string } })[];
    expect(bindings.length).toBeGreaterThan(1);
    const own = roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { roleRef } of bindings) {
      expect(own).toContain(`${roleRef.kind} ${roleRef.name}`);
    }
    // Live access for users is configured separately, and it is not cluster-admin either.
    expect(JSON.stringify(allManifests().filter(({ kind }) => kind === 'ClusterRoleBinding'))).not.toContain(
      'cluster-admin',
    );
  });
});

suite('values', () => {
  test('are escaped', () => {
    const nasty = 'a"\n  injected: {{b}} \\';
    const params = find('ConfigMap', 'argocd-agent-params', { ...input, serverAddress: nasty });
    expect(params?.data?.['agent.server.address']).toBe(nasty);
    expect(params?.data).not.toHaveProperty('injected');
  });

  test('that are missing cause an error, not an empty field', () => {
    expect(() => templates.render('agent', { namespace: 'argocd' })).toThrow(/not defined/);
  });
});

suite('CRDs', () => {
  test('ocm defect M12: are updated on the clusters, not only created', () => {
    const works = renderWorks(templates, input).filter(({ part }) => part === 'crds');
    expect(works.length).toBeGreaterThan(0);
    for (const { spec } of works) {
      // By default the work agent updates what it finds.
      const strategies = (spec.manifestConfigs ?? []).map(({ updateStrategy }) => updateStrategy?.type ?? 'Update');
      expect(strategies.filter((type) => type === 'CreateOnly' || type === 'ReadOnly')).toEqual([]);
    }
  });

  test('are delivered without descriptions, conversion and metadata of the hub', () => {
    const made = deliverableCrd(hubCrd('applications.argoproj.io'));
    expect(made.metadata).toEqual({ name: 'applications.argoproj.io', labels: expect.anything() });
    expect(made).not.toHaveProperty('status');
    expect(made.spec).not.toHaveProperty('conversion');
    expect(made.spec?.versions[0]?.schema).toEqual({
      openAPIV3Schema: { properties: { description: { type: 'string' } } },
    });
  });
});
