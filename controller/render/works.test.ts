import { expect, describe as suite, test } from 'vitest';
import type { Deployment, KubeObject, PodSpec, PodTemplate } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { deliverableCrd } from '../hub/index.ts';
import { argoCD, hubCrd, input, operator } from '../testing/render-input.ts';
import { describe } from './pack.ts';
import { type RenderInput, renderWorks } from './works.ts';

const templates = new Templates();
type Workload = KubeObject & { spec: { template: PodTemplate & { spec: PodSpec } } };
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
        selectivelyOrphans: {
          orphaningRules: expect.arrayContaining([{ group: '', resource: 'namespaces', name: 'argocd' }]),
        },
      });
    }
  });

  test('bring the project default to autonomous clusters: created once, never changed, never deleted', () => {
    const autonomous: RenderInput = { ...input, mode: 'autonomous' };
    const group = 'argoproj.io';
    const project = { group, resource: 'appprojects', namespace: 'argocd', name: 'default' };
    for (const from of [
      autonomous,
      { ...autonomous, argoCD: undefined },
      { ...autonomous, argoCD: undefined, operator },
    ]) {
      const agent = renderWorks(templates, from).at(-1)?.spec;
      expect(agent?.workload.manifests.find(({ kind }) => kind === 'AppProject')).toMatchObject({
        metadata: { namespace: 'argocd', name: 'default' },
        spec: { sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }] },
      });
      expect(agent?.manifestConfigs).toContainEqual({
        resourceIdentifier: project,
        updateStrategy: { type: 'CreateOnly' },
      });
      expect(agent?.deleteOption?.selectivelyOrphans?.orphaningRules).toContainEqual(project);
    }
    expect(allManifests().filter(({ kind }) => kind === 'AppProject')).toEqual([]);
  });

  test('bring the ApplicationSet controller to autonomous clusters, whose users make their Applications there', () => {
    const names = (mode: RenderInput['mode']) => workloadsOf({ ...input, mode }).map(({ metadata }) => metadata.name);
    const managed = names('managed');
    expect(managed).not.toContain('argocd-applicationset-controller');
    expect(names('autonomous').sort()).toEqual([...managed, 'argocd-applicationset-controller'].sort());
    const policy = find('NetworkPolicy', 'argocd-repo-server-network-policy', { ...input, mode: 'autonomous' });
    expect(JSON.stringify(policy)).toContain('argocd-applicationset-controller');
    const withOwn = allManifests({ ...input, mode: 'autonomous', argoCD: undefined });
    expect(withOwn.some(({ metadata }) => metadata.name === 'argocd-applicationset-controller')).toBe(false);
  });

  test('let only the namespaces of Prometheus read metrics and health of the agent: the usual ones, or those of a variable', () => {
    const admitted = (config: RenderInput['config']) => {
      const { spec } = find('NetworkPolicy', 'argocd-agent-agent', { ...input, config }) as unknown as {
        spec: { ingress: unknown };
      };
      return spec.ingress;
    };
    const rule = (values: readonly string[]) => [
      {
        from: [
          {
            namespaceSelector: {
              matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
            },
          },
        ],
        ports: [
          { protocol: 'TCP', port: 8181 },
          { protocol: 'TCP', port: 8002 },
        ],
      },
    ];
    const usual = ['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'];
    expect(admitted(input.config)).toEqual(rule(usual));
    expect(admitted({ ...input.config, metricsNamespaces: ['observability'] })).toEqual(rule(['observability']));
  });

  test('replace the pods that read a Secret at their start when the Secret changes, and no others', () => {
    const checksums = (change: Partial<NonNullable<RenderInput['argoCD']>> = {}) =>
      workloadsOf({ ...input, argoCD: { ...argoCD, ...change } }).map(
        ({ metadata, spec }) =>
          [metadata.name, spec.template.metadata?.annotations?.['checksum/argocd-redis']] as const,
      );
    const [first, second] = [checksums(), checksums({ redisPassword: 'another' })];
    expect(first.map(([name]) => name).sort()).toEqual([
      'argocd-agent-agent',
      'argocd-application-controller',
      'argocd-redis',
      'argocd-repo-server',
    ]);
    expect(first.every(([, checksum]) => /^[0-9a-f]{64}$/.test(checksum ?? ''))).toBe(true);
    expect(first.filter(([, checksum]) => second.some(([, other]) => other === checksum))).toEqual([]);
    const certificate = { certificate: 'NEW', key: 'NEW' };
    expect(workloadsOf({ ...input, clientCertificate: certificate })).toEqual(workloadsOf());
    expect(JSON.stringify(workloadsOf({ ...input, argoCD: undefined }))).not.toContain('checksum/');
  });

  test('replace a pod of the application controller that cannot be scheduled; a StatefulSet that exists stays as it is', () => {
    const policyOf = (orderedPods: boolean) =>
      workloadsOf({ ...input, argoCD: { ...argoCD, orderedPods } }).find(({ kind }) => kind === 'StatefulSet')?.spec;
    expect(policyOf(false)).toHaveProperty('podManagementPolicy', 'Parallel');
    expect(policyOf(true)).not.toHaveProperty('podManagementPolicy');
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

  test.each([
    ['registry.example/argocd-agent:v0.9.0', true],
    ['argocd-agent@sha256:00ff', true],
    ['registry.example:5000/argocd-fleet:1', false],
    ['registry.example/argocd-agent/fleet:1', false],
  ])("argocd-agent's own image gets its rights and its probe: %s %s", (agentImage, isOriginal) => {
    const manifests = allManifests({ ...input, agentImage }) as (KubeObject & { rules?: { verbs: string[] }[] })[];
    const rules = manifests.flatMap((one) => (one.metadata.name === 'argocd-agent-agent' ? (one.rules ?? []) : []));
    const writing = rules.filter(({ verbs }) => verbs.includes('patch'));
    expect(writing.length).toBeGreaterThan(2);
    expect(writing.map(({ verbs }) => verbs.includes('update'))).toEqual(writing.map(() => isOriginal));
    const others = rules.filter(({ verbs }) => !verbs.includes('patch')).map(({ verbs }) => verbs);
    expect(others).toEqual([isOriginal ? ['get', 'list', 'watch', 'create'] : ['get', 'create']]);
    const agent = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'argocd-agent-agent',
    );
    const [container] = (agent as Deployment).spec?.template?.spec?.containers ?? [];
    expect(JSON.stringify(container)).toContain(`"path":"${isOriginal ? '/healthz' : '/livez'}"`);
    expect(JSON.stringify(container).includes('/livez')).toBe(!isOriginal);
  });

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

  test('of namespaces may be numbers and words of YAML', () => {
    for (const namespace of ['123', '1e3', '0x1f', 'true', 'null']) {
      const from = { ...input, namespace, operator: undefined };
      const seen = allManifests(from).flatMap(({ metadata }) => metadata.namespace ?? []);
      expect([...new Set<unknown>(seen)]).toEqual([namespace]);
      expect(find('Namespace', namespace, from)).toBeDefined();
    }
  });

  test('that are missing cause an error, not an empty field', () => {
    expect(() => templates.render('agent', { namespace: 'argocd' })).toThrow(/not defined/);
    expect(() => templates.render('operator', { operatorImage: 'x', pullPolicy: 'Always' })).toThrow(/not defined/);
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
