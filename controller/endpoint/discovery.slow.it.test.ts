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

test('the address follows the objects that expose the principal, and the certificate names every endpoint', async () => {
  const { ns, a, client } = hub;
  const name = 'argocd-agent-principal';
  const put = (spec: Service['spec']) =>
    hub.fixture.put(services, { metadata: { namespace: ns, name }, spec } as Service);
  const at = (address: string) =>
    hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'True', new RegExp(`^Server at ${address}$`));
  const hosts = async () => {
    const certificate = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt') ?? '';
    const { dnsNames, ipAddresses } = inspectCertificate(certificate);
    return [...dnsNames, ...ipAddresses];
  };
  const ports = [{ name: 'https', port: 443, nodePort: 30443 }];
  await put({ type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] });
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { principalServerAddress: '', principalServerPort: '' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'False', /no external endpoint/);

  await put({ type: 'NodePort', ports });
  await client.create(nodes, { metadata: { name: 'n1' } });
  const addresses = [{ type: 'InternalIP', address: '10.9.8.7' }];
  await client.mergePatch(nodes, { name: 'n1' }, { status: { addresses } }, { subresource: 'status' });
  await at('10.9.8.7:30443');

  const backend = { service: { name, port: { number: 443 } } };
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
  const rule = { host: 'ingress.example.com', http };
  await client.create(ingresses, { metadata: { namespace: ns, name: 'agents' }, spec: { rules: [rule] } });
  await at('ingress.example.com:443');

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
  await at('route.example.com:443');
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
  await at('gateway.example.com:8443');

  await put({ type: 'LoadBalancer', ports });
  const ingress = [{ hostname: 'lb.example.com' }];
  const status = { loadBalancer: { ingress } };
  await client.mergePatch(services, { namespace: ns, name }, { status }, { subresource: 'status' });
  await at('lb.example.com:443');
  await until('a certificate for all of them', async () => {
    const names = await hosts();
    return ['lb', 'gateway', 'route', 'ingress'].every((one) => names.includes(`${one}.example.com`));
  });
  // After a restart the result is the same at once, without an intermediate one.
  await hub.idle();
  const settled = await hub.versions();
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(settled);
});
