import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CustomResourceDefinition,
  crds,
  endpointSlices,
  nodes,
  type resourceType,
  type Service,
  services,
} from '../../lib/kube/index.ts';
import { inspectCertificate, secretText } from '../../lib/pki/index.ts';
import { useHub } from '../testing/hub.ts';
import { gateways, ingresses, routes, tlsRoutes } from './ingress-kinds.ts';

const hub = useHub(borrowCluster);

const crdOf = (group: string, version: string, kind: string, plural: string): CustomResourceDefinition => ({
  metadata: {
    name: `${plural}.${group}`,
    // The API server requires it for the group of the Gateway API.
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/1' },
  },
  spec: {
    group,
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    scope: 'Namespaced',
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

test('Ready is False while no pod is behind the Service of the principal', async () => {
  const { ns, a } = hub;
  const name = 'argocd-agent-principal';
  await hub.fixture.put(services, {
    metadata: { namespace: ns, name },
    spec: { type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] },
  });
  const endpointIs = (ready: boolean) =>
    hub.fixture.put(endpointSlices, {
      metadata: { namespace: ns, name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready } }],
      ports: [{ name: 'https', port: 8443, protocol: 'TCP' }],
    });
  const lacks = new RegExp(`Service ${ns}/${name} has no ready endpoints`);
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'PrincipalAvailable', 'False', lacks);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'False', lacks);
  // The clusters are enrolled all the same: the principal may come later.
  await hub.enrolled(a);
  await endpointIs(true);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  await endpointIs(false);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'False', lacks);
});

test("the principal's certificate has the names of the fleet page's Service while there is one", async () => {
  const { ns } = hub;
  const name = 'argocd-agent-principal-fleet-page';
  const labels = { 'app.kubernetes.io/name': 'argocd-agent-principal', 'app.kubernetes.io/component': 'principal' };
  const pageHosts = async () => {
    const certificate = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt') ?? '';
    return inspectCertificate(certificate).dnsNames.filter((host) => host.includes('fleet-page'));
  };
  await hub.enroll();
  expect(await pageHosts()).toEqual([]);
  await hub.fixture.put(services, {
    metadata: { namespace: ns, name, labels },
    spec: { ports: [{ name: 'fleet-page', port: 443 }] },
  });
  const wanted = [name, `${name}.${ns}`, `${name}.${ns}.svc`, `${name}.${ns}.svc.cluster.local`];
  await until(async () => expect(await pageHosts()).toEqual(wanted));
  await hub.client.delete(services, { namespace: ns, name });
  await until(async () => expect(await pageHosts()).toEqual([]));
});

test('agents stay at their address while it exposes the principal, and the certificate names every endpoint', async () => {
  const { ns, a, client } = hub;
  const name = 'argocd-agent-principal';
  const put = (spec: Service['spec']) =>
    hub.fixture.put(services, { metadata: { namespace: ns, name }, spec } as Service);
  const discovers = (address: string) =>
    hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'True', new RegExp(`^Server at ${address}$`));
  /** Agents have an address when it is in their works. Until then it is not the present one. */
  const moveTo = async (host: string, port: number) => {
    await discovers(`${host}:${port}`);
    await until(`the agent's work leads to ${host}`, async () =>
      JSON.stringify((await hub.work(a, 'agent'))?.spec ?? {}).includes(host),
    );
    await hub.idle();
  };
  const hosts = async () => {
    const certificate = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt') ?? '';
    const { dnsNames, ipAddresses } = inspectCertificate(certificate);
    return [...dnsNames, ...ipAddresses];
  };
  /** The certificate shows that the controller knows another endpoint. */
  const stayAt = async (host: string, port: number, another: string) => {
    await until(`a certificate for ${another}`, async () => (await hosts()).includes(another));
    await hub.idle();
    await discovers(`${host}:${port}`);
  };
  const ports = [{ name: 'https', port: 443, nodePort: 30443 }];
  await put({ type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] });
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { principalServerAddress: '', principalServerPort: '' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'False', /no external endpoint/);

  await put({ type: 'NodePort', ports });
  const nodeIs = async (node: string, address: string, ready: 'True' | 'False') => {
    const status = {
      addresses: [{ type: 'InternalIP', address }],
      conditions: [{ type: 'Ready', status: ready, reason: 'Test', message: '' }],
    };
    await client.mergePatch(nodes, { name: node }, { status }, { subresource: 'status' });
  };
  await client.create(nodes, { metadata: { name: 'n2' } });
  await nodeIs('n2', '10.9.8.7', 'True');
  await moveTo('10.9.8.7', 30443);
  // It is the first by name.
  await client.create(nodes, { metadata: { name: 'n1' } });
  await nodeIs('n1', '10.9.8.6', 'True');
  await stayAt('10.9.8.7', 30443, '10.9.8.6');
  await client.mergePatch(nodes, { name: 'n2' }, { spec: { unschedulable: true } });
  const backend = { service: { name, port: { number: 443 } } };
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
  const rule = { host: 'ingress.example.com', http };
  await client.create(ingresses, { metadata: { namespace: ns, name: 'agents' }, spec: { rules: [rule] } });
  await stayAt('10.9.8.7', 30443, 'ingress.example.com');
  await nodeIs('n2', '10.9.8.7', 'False');
  await moveTo('ingress.example.com', 443);
  await nodeIs('n2', '10.9.8.7', 'True');

  // The hub gets further kinds while the controller runs.
  await client.create(crds, crdOf('route.openshift.io', 'v1', 'Route', 'routes'));
  await client.create(crds, crdOf('gateway.networking.k8s.io', 'v1alpha2', 'TLSRoute', 'tlsroutes'));
  await client.create(crds, crdOf('gateway.networking.k8s.io', 'v1', 'Gateway', 'gateways'));
  const putLater = (type: ReturnType<typeof resourceType>, object: object) =>
    until(`a ${type.kind}`, () => hub.fixture.put(type, object as Service));
  await putLater(routes, {
    metadata: { namespace: ns, name: 'agents' },
    spec: { host: 'route.example.com', to: { kind: 'Service', name }, tls: { termination: 'passthrough' } },
  });
  await stayAt('ingress.example.com', 443, 'route.example.com');
  await putLater(gateways('v1'), {
    metadata: { namespace: ns, name: 'edge' },
    spec: { listeners: [{ name: 'agents', port: 8443, protocol: 'TLS' }] },
  });
  await putLater(tlsRoutes('v1alpha2'), {
    metadata: { namespace: ns, name: 'agents' },
    spec: {
      hostnames: ['gateway.example.com'],
      parentRefs: [{ name: 'edge' }],
      rules: [{ backendRefs: [{ name, port: 443 }] }],
    },
  });
  await stayAt('ingress.example.com', 443, 'gateway.example.com');

  await put({ type: 'LoadBalancer', ports });
  const balancedAt = (...hostnames: string[]) => {
    const ingress = hostnames.map((hostname) => ({ hostname }));
    return client.mergePatch(
      services,
      { namespace: ns, name },
      { status: { loadBalancer: { ingress } } },
      { subresource: 'status' },
    );
  };
  await balancedAt('lb.example.com');
  await stayAt('ingress.example.com', 443, 'lb.example.com');
  const names = await hosts();
  for (const one of ['lb', 'gateway', 'route', 'ingress']) {
    expect(names).toContain(`${one}.example.com`);
  }

  // What agents use goes away: the best of the others takes its place.
  await client.delete(ingresses, { namespace: ns, name: 'agents' });
  await moveTo('lb.example.com', 443);
  await balancedAt('first.example.com', 'lb.example.com');
  await stayAt('lb.example.com', 443, 'first.example.com');
  // After a restart the result is the same at once, without an intermediate one.
  const settled = await hub.versions();
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(settled);
  await balancedAt();
  await moveTo('gateway.example.com', 8443);
  await client.delete(tlsRoutes('v1alpha2'), { namespace: ns, name: 'agents' });
  await moveTo('route.example.com', 443);
});
