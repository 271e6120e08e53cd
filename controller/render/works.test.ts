import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, describe as suite, test } from 'vitest';
import { parse } from 'yaml';
import type { CustomResourceDefinition, KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { deliverableCrd } from './crds.ts';
import { decorate, mirrored } from './decorate.ts';
import { Templates } from './templates.ts';
import { describe, OversizedManifestError, pack, type RenderInput, renderWorks, workLimit } from './works.ts';

const templates = new Templates();
const crd = (name: string): CustomResourceDefinition => ({
  metadata: { name, uid: 'hub-uid', resourceVersion: '7', annotations: { a: 'b' } },
  spec: {
    group: 'argoproj.io',
    names: { kind: 'Application', plural: 'applications' },
    scope: 'Namespaced',
    conversion: { strategy: 'Webhook' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { description: 'text', properties: { description: { type: 'string', description: 'x' } } },
        },
      },
    ],
  },
  status: { storedVersions: ['v1alpha1'] },
});
const argoCD = {
  image: 'quay.io/argoproj/argocd:v3.2.6',
  redisImage: 'redis:8',
  redisPassword: 'secret',
  serverSecretKey: 'key',
  crds: [crd('applications.argoproj.io'), crd('appprojects.argoproj.io')].map(deliverableCrd),
};
const input: RenderInput = {
  namespace: 'argocd',
  mode: 'managed',
  serverAddress: 'principal.example.com',
  serverPort: '443',
  authorities: 'PEM "of": authorities\n',
  clientCertificate: { certificate: 'CERT', key: 'KEY' },
  agentImage: 'quay.io/open-cluster-management/argocd-fleet:1',
  pullPolicy: 'IfNotPresent',
  argoCD,
  config: undefined,
};
type Workload = KubeObject & { spec: { template: { spec: PodSpec } } };
const manifestsOf = (from: RenderInput = input) =>
  renderWorks(templates, from).flatMap(({ spec }) => spec.workload.manifests);
const workloadsOf = (from: RenderInput = input) =>
  manifestsOf(from).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Workload[];
const find = (kind: string, name: string, from: RenderInput = input) =>
  manifestsOf(from).find((object) => object.kind === kind && object.metadata.name === name) as
    | (KubeObject & { data?: Record<string, string> })
    | undefined;

suite('works of a cluster', () => {
  test('are three, in the order of delivery, and the same input gives the same', () => {
    const works = renderWorks(templates, input);
    expect(works.map(({ part, index }) => `${part}-${index}`)).toEqual(['crds-0', 'argocd-0', 'agent-0']);
    expect(renderWorks(templates, structuredClone(input))).toEqual(works);
  });

  test('carry no duplicates, every manifest has apiVersion, kind and name, namespaced ones the right namespace', () => {
    for (const { spec } of renderWorks(templates, { ...input, namespace: 'gitops' })) {
      const seen = new Set<string>();
      for (const object of spec.workload.manifests) {
        expect(object.apiVersion && object.kind && object.metadata.name).toBeTruthy();
        if (object.metadata.namespace !== undefined) expect(object.metadata.namespace).toBe('gitops');
        expect(seen).not.toContain(describe(object));
        seen.add(describe(object));
      }
    }
  });

  test('leave the CRDs and the namespace behind when they go', () => {
    const [crds, argocd, agent] = renderWorks(templates, input);
    expect(crds?.spec.deleteOption).toEqual({ propagationPolicy: 'Orphan' });
    for (const work of [argocd, agent]) {
      expect(work?.spec.deleteOption).toEqual({
        propagationPolicy: 'SelectivelyOrphan',
        selectivelyOrphans: { orphaningRules: [{ group: '', resource: 'namespaces', name: 'argocd' }] },
      });
    }
  });

  test('make the ConfigMap of the GPG keys once: the agent fills it with what the hub says', () => {
    const configs = renderWorks(templates, input).flatMap(({ spec }) => spec.manifestConfigs ?? []);
    const keys = configs.filter(({ resourceIdentifier: { name } }) => name === 'argocd-gpg-keys-cm');
    expect(keys).toMatchObject([{ updateStrategy: { type: 'CreateOnly' } }]);
  });

  test('ask for the status of every workload', () => {
    const watched = renderWorks(templates, input).flatMap(({ spec }) =>
      (spec.manifestConfigs ?? []).filter(({ feedbackRules }) => feedbackRules).map((c) => c.resourceIdentifier.name),
    );
    expect(watched.sort()).toEqual(
      workloadsOf()
        .map(({ metadata }) => metadata.name)
        .sort(),
    );
  });

  test('an Argo CD that is there already is left alone: only the agent comes', () => {
    const works = renderWorks(templates, { ...input, argoCD: undefined });
    expect(works.map(({ part }) => part)).toEqual(['agent']);
  });
});

suite('the pods', () => {
  test('run without rights on the node', () => {
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
    for (const service of manifestsOf().filter(({ kind }) => kind === 'Service')) {
      const { spec } = service as unknown as { spec: { ports: { targetPort: string }[] } };
      for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort);
    }
  });

  test('find every Secret and ConfigMap that they insist on in the works', () => {
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
  test('gets its parameters under the names of the original', () => {
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

  test('may not do more than it needs', () => {
    const roles = manifestsOf().filter(
      ({ kind, metadata }) => kind?.endsWith('Role') && metadata.name.includes('agent'),
    );
    expect(roles.length).toBeGreaterThan(1);
    expect(JSON.stringify(roles)).not.toContain('"*"');
  });
});

suite('values', () => {
  test('cannot break out of their place', () => {
    const nasty = 'a"\n  injected: {{b}} \\';
    const params = find('ConfigMap', 'argocd-agent-params', { ...input, serverAddress: nasty });
    expect(params?.data?.['agent.server.address']).toBe(nasty);
    expect(params?.data).not.toHaveProperty('injected');
  });

  test('that are missing are an error, not an empty field', () => {
    expect(() => templates.render('agent', { namespace: 'argocd' })).toThrow(/not defined/);
  });
});

suite('CRDs', () => {
  test('travel without texts, conversion and traces of the hub', () => {
    const made = deliverableCrd(crd('applications.argoproj.io'));
    expect(made.metadata).toEqual({ name: 'applications.argoproj.io', labels: expect.anything() });
    expect(made).not.toHaveProperty('status');
    expect(made.spec).not.toHaveProperty('conversion');
    expect(made.spec?.versions[0]?.schema).toEqual({
      openAPIV3Schema: { properties: { description: { type: 'string' } } },
    });
  });

  const shared = join(import.meta.dirname, '../../../shared/crds/argocd');
  test.runIf(existsSync(shared))("Argo CD's own fit into one work", () => {
    const read = (name: string) =>
      parse(readFileSync(join(shared, `${name}-crd.yaml`), 'utf8')) as CustomResourceDefinition;
    const crds = [read('application'), read('appproject')].map(deliverableCrd);
    const works = renderWorks(templates, { ...input, argoCD: { ...argoCD, crds } });
    expect(works.map(({ part }) => part)).toEqual(['crds', 'argocd', 'agent']);
    for (const { spec } of works) expect(JSON.stringify(spec.workload).length).toBeLessThan(workLimit);
  });
});

suite('size', () => {
  const object = (name: string, bytes: number): KubeObject => {
    const empty = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'x' }, data: { a: '' } };
    return { ...empty, data: { a: `é${'x'.repeat(bytes - JSON.stringify(empty).length - 2)}` } } as KubeObject;
  };

  test('splits into as many works as needed, keeping order and losing nothing', () => {
    const objects = [object('a', 400), object('b', 500), object('c', 200), object('d', 801), object('e', 199)];
    const shares = pack(objects, 1000);
    expect(shares.flat()).toEqual(objects);
    expect(shares.map((share) => share.map(({ metadata }) => metadata.name))).toEqual([['a', 'b'], ['c'], ['d', 'e']]);
    for (const share of shares) {
      const bytes = share.reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), 0);
      expect(bytes).toBeLessThanOrEqual(1000);
    }
  });

  test('an object that fits nowhere is named with its size', () => {
    const big = object('big', workLimit + 2);
    expect(() => pack([object('a', 400), big])).toThrow(OversizedManifestError);
    expect(() => pack([big])).toThrow(
      /^ConfigMap x\/big has 51200\d bytes; a ManifestWork takes at most 512000 \(500 KiB\)/,
    );
    const application = deliverableCrd(crd('applications.argoproj.io'));
    const crds = [{ ...application, spec: { ...application.spec, extra: 'x'.repeat(workLimit) } }] as never;
    expect(() => renderWorks(templates, { ...input, argoCD: { ...argoCD, crds } })).toThrow(
      /CustomResourceDefinition applications.argoproj.io has \d+ bytes/,
    );
  });
});

suite('an AddOnDeploymentConfig', () => {
  test('places, mirrors, proxies and limits', () => {
    const config = {
      nodePlacement: { nodeSelector: { role: 'infra' }, tolerations: [{ key: 'infra', operator: 'Exists' }] },
      registries: [{ source: 'quay.io/argoproj', mirror: 'mirror.local/argo' }],
      proxyConfig: { httpsProxy: 'http://proxy:3128', noProxy: '10.0.0.0/8' },
      resourceRequirements: [
        { containerID: '*:*:*', resources: { requests: { cpu: '1m' } } },
        { containerID: 'deployments:argocd-agent-agent:*', resources: { limits: { memory: '1Gi' } } },
      ],
    };
    for (const { metadata, spec } of workloadsOf({ ...input, config })) {
      const pod = spec.template.spec;
      expect(pod.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', role: 'infra' });
      expect(pod.tolerations).toEqual(config.nodePlacement.tolerations);
      const [container] = pod.containers;
      expect(container?.env).toContainEqual({ name: 'HTTPS_PROXY', value: 'http://proxy:3128' });
      const wanted =
        metadata.name === 'argocd-agent-agent' ? { limits: { memory: '1Gi' } } : { requests: { cpu: '1m' } };
      expect(container?.resources).toEqual(wanted);
      if (container?.image?.includes('argocd:')) expect(container.image).toBe('mirror.local/argo/argocd:v3.2.6');
    }
    expect(decorate(manifestsOf(), undefined)).toEqual(manifestsOf());
  });

  test('the longest matching registry wins', () => {
    const registries = [
      { mirror: 'all.local' },
      { source: 'quay.io', mirror: 'q.local' },
      { source: 'quay.io/a', mirror: 'a.local/x' },
    ];
    expect(mirrored('quay.io/a/b:1', registries)).toBe('a.local/x/b:1');
    expect(mirrored('quay.io/ab/c:1', registries)).toBe('q.local/ab/c:1');
    expect(mirrored('docker.io/library/redis:8', registries)).toBe('all.local/redis:8');
    expect(mirrored('quay.io/a/b:1', [])).toBe('quay.io/a/b:1');
  });
});
