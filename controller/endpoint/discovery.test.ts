import { expect, test } from 'vitest';
import type { KubeNode, Service } from '../../lib/kube/index.ts';
import { resourceProxyHosts } from '../../lib/pki/index.ts';
import type { ServiceExposure } from './candidates.ts';
import {
  discoverEndpoint,
  endpointText,
  principalHosts,
  principalServices,
  resourceProxyAddress,
} from './discovery.ts';
import type { Gateway, Ingress, Route, TlsRoute } from './ingress-kinds.ts';

const service = (spec: Service['spec'], ingress?: { ip?: string; hostname?: string }[]): Service => ({
  metadata: { namespace: 'argocd', name: 'argocd-agent-principal' },
  ...(spec ? { spec } : {}),
  ...(ingress ? { status: { loadBalancer: { ingress } } } : {}),
});
const node = (...addresses: [type: string, address: string][]): KubeNode => ({
  metadata: { name: 'n' },
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});
const none = { address: '', port: '' };
const around = (found?: Service, nodes: KubeNode[] = [], others: Partial<ServiceExposure> = {}): ServiceExposure => ({
  service: found,
  services: [],
  nodes,
  ingresses: [],
  routes: [],
  tlsRoutes: [],
  slices: [],
  gateways: [],
  ...others,
});
const find = (written: { address: string; port: string }, found?: Service, nodes: KubeNode[] = []) =>
  discoverEndpoint(written, around(found, nodes), 'argocd');

test('ocm defect M3: the address that the user set is used as it is', () => {
  expect(find({ address: 'a', port: '1' })).toEqual({ address: 'a', port: '1' });
});

test('ocm defect M3: a load balancer: host name before IP address, the serving port, completed by what the user set', () => {
  const ports = [
    { name: 'metrics', port: 8000 },
    { name: 'grpc', port: 8443 },
  ];
  const both = service({ type: 'LoadBalancer', ports }, [{}, { ip: '1.2.3.4', hostname: 'lb.example.com' }]);
  expect(find(none, both)).toEqual({ address: 'lb.example.com', port: '8443' });
  expect(find({ address: 'mine', port: '' }, both)).toEqual({ address: 'mine', port: '8443' });
  expect(find({ address: '', port: '9' }, both)).toEqual({ address: 'lb.example.com', port: '9' });
  const odd = service({ type: 'LoadBalancer', ports: [{ name: 'x', port: 7 }] }, [{ ip: '1.2.3.4' }]);
  expect(find(none, odd)).toEqual({ address: '1.2.3.4', port: '443' });
});

test('a node port: the first internal address', () => {
  const nodePort = service({
    type: 'NodePort',
    ports: [
      { name: 'x', port: 1, nodePort: 30001 },
      { name: 'https', port: 443, nodePort: 30443 },
    ],
  });
  const nodes = [node(['Hostname', 'n1']), node(['ExternalIP', '8.8.8.8'], ['InternalIP', '10.0.0.2'])];
  expect(find(none, nodePort, nodes)).toEqual({ address: '10.0.0.2', port: '30443' });
  expect(find(none, nodePort, [])).toEqual({ problem: expect.stringContaining('no node is known') });
});

test('the message names what is missing', () => {
  expect(find(none)).toEqual({
    problem: expect.stringContaining(
      'there is no Service argocd-agent-principal or openshift-gitops-agent-principal in namespace argocd',
    ),
  });
  expect(find(none, service({ type: 'ClusterIP', ports: [] }))).toEqual({
    problem: expect.stringContaining(
      'no external endpoint found for service argocd/argocd-agent-principal (type ClusterIP)',
    ),
  });
});

test('an IPv6 address is shown in brackets', () => {
  expect(endpointText({ address: '2001:db8::1', port: '443' })).toBe('[2001:db8::1]:443');
});

test('ocm defect M4: certificates name every endpoint of the principal and the resource proxy, each once', () => {
  const nodePort = service({ type: 'NodePort', ports: [{ name: 'https', port: 443, nodePort: 30443 }] }, [
    { hostname: 'lb', ip: '9.9.9.9' },
  ]);
  const hosts = principalHosts(
    around(nodePort, [node(['InternalIP', '10.0.0.2']), node(['InternalIP', '10.0.0.3'])]),
    'argocd',
    ['lb'],
  );
  expect(hosts).toEqual(
    expect.arrayContaining([
      'lb',
      '9.9.9.9',
      '10.0.0.2',
      '10.0.0.3',
      'argocd-agent-principal.argocd.svc.cluster.local',
      'localhost',
      '127.0.0.1',
      '::1',
    ]),
  );
  expect(new Set(hosts).size).toBe(hosts.length);
  expect(resourceProxyHosts('argocd', 'argocd-agent-principal')).toEqual(
    expect.arrayContaining([
      'argocd-agent-resource-proxy',
      'argocd-agent-principal-resource-proxy.argocd.svc',
      '127.0.0.1',
    ]),
  );
});

test('Argo CD on the hub reaches the resource proxy by the Service of whoever deployed the principal', () => {
  const principal = service({});
  expect(resourceProxyAddress(undefined)).toBe('argocd-agent-resource-proxy:9090');
  expect(resourceProxyAddress(principal)).toBe('argocd-agent-resource-proxy:9090');
  const owner = { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', name: 'openshift-gitops', uid: 'x' };
  for (const name of principalServices) {
    const metadata = { namespace: 'argocd', name, ownerReferences: [owner] };
    expect(resourceProxyAddress({ ...principal, metadata })).toBe(`${name}-resource-proxy:9090`);
    // The proxy's certificate names it.
    expect(resourceProxyHosts('argocd', name)).toContain(`${name}-resource-proxy`);
  }
});

const inside = service({ type: 'ClusterIP', ports: [{ name: 'grpc', port: 8443 }] });
const named = (name: string) => ({ namespace: 'argocd', name });
const best = (others: Partial<ServiceExposure>, found = inside, nodes: KubeNode[] = []) =>
  discoverEndpoint(none, around(found, nodes, others), 'argocd');
const hostsOf = (others: Partial<ServiceExposure>) => principalHosts(around(inside, [], others), 'argocd', []);

test('an Ingress for the Service: its host, or its load balancer address without a host', () => {
  const backend = { service: { name: 'argocd-agent-principal' } };
  const paths = (name: string) => ({ paths: [{ backend: { service: { name } } }] });
  const status = { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } };
  const ingress: Ingress = {
    metadata: named('one'),
    spec: {
      rules: [
        { host: 'ui.example.com', http: paths('argocd-server') },
        { host: 'agents.example.com', http: paths('argocd-agent-principal') },
        { host: '*.example.org', http: paths('argocd-agent-principal') },
      ],
    },
  };
  expect(best({ ingresses: [ingress] })).toEqual({ address: 'agents.example.com', port: '443' });
  expect(hostsOf({ ingresses: [ingress] })).not.toContain('*.example.org');
  const any: Ingress = { metadata: named('two'), spec: { defaultBackend: backend }, status };
  expect(best({ ingresses: [any] })).toEqual({ address: '203.0.113.9', port: '443' });
  expect(hostsOf({ ingresses: [any, ingress] })).toEqual(expect.arrayContaining(['203.0.113.9', 'agents.example.com']));
});

test('a Route of OpenShift with TLS passthrough', () => {
  const route = (termination: string, status: Route['status'] = {}): Route => ({
    metadata: named('r'),
    spec: { host: 'wished.example.com', to: { kind: 'Service', name: 'argocd-agent-principal' }, tls: { termination } },
    status,
  });
  expect(best({ routes: [route('passthrough')] })).toEqual({ address: 'wished.example.com', port: '443' });
  const admitted = route('passthrough', { ingress: [{ host: 'given.apps.example.com' }] });
  expect(best({ routes: [admitted] })).toEqual({ address: 'given.apps.example.com', port: '443' });
  expect(best({ routes: [route('edge')] })).toEqual({ problem: expect.stringContaining('no external endpoint') });
});

test('a TLSRoute of the Gateway API: its host names, the port of the listener', () => {
  const route = (spec: TlsRoute['spec'] = {}): TlsRoute => ({
    metadata: named('t'),
    spec: {
      parentRefs: [{ namespace: 'infra', name: 'edge', sectionName: 'agents' }],
      rules: [{ backendRefs: [{ name: 'argocd-agent-principal' }] }],
      ...spec,
    },
  });
  const gateway: Gateway = {
    metadata: { namespace: 'infra', name: 'edge' },
    spec: {
      listeners: [
        { name: 'web', port: 443, protocol: 'HTTPS' },
        { name: 'agents', port: 8443, protocol: 'TLS' },
      ],
    },
    status: { addresses: [{ value: '198.51.100.7' }] },
  };
  const hostnames = ['agents.example.com'];
  expect(best({ tlsRoutes: [route({ hostnames })], gateways: [gateway] })).toEqual({
    address: 'agents.example.com',
    port: '8443',
  });
  expect(best({ tlsRoutes: [route()], gateways: [gateway] })).toEqual({ address: '198.51.100.7', port: '8443' });
  expect(best({ tlsRoutes: [route({ hostnames })] })).toEqual({ address: 'agents.example.com', port: '443' });
  const other = route({ hostnames, rules: [{ backendRefs: [{ name: 'other' }] }] });
  expect(best({ tlsRoutes: [other] })).toEqual({ problem: expect.any(String) });
  // A listener that ends TLS leads no agent to the principal.
  const listener = (name: string, port: number, mode: string) => ({ name, port, protocol: 'TLS', tls: { mode } });
  const ending = { ...gateway, spec: { listeners: [listener('agents', 8443, 'Terminate')] } };
  expect(best({ tlsRoutes: [route({ hostnames })], gateways: [ending] })).toEqual({ problem: expect.any(String) });
  const both = {
    ...gateway,
    spec: { listeners: [...ending.spec.listeners, listener('through', 9443, 'Passthrough')] },
  };
  const anywhere = route({ hostnames, parentRefs: [{ namespace: 'infra', name: 'edge' }] });
  expect(best({ tlsRoutes: [anywhere], gateways: [both] })).toEqual({ address: 'agents.example.com', port: '9443' });
});

test('the load balancer comes first and the nodes last; certificates name all endpoints', () => {
  const routes: Route[] = [
    {
      metadata: named('r'),
      spec: { host: 'route.example.com', to: { name: 'argocd-agent-principal' }, tls: { termination: 'passthrough' } },
    },
  ];
  const ports = [{ name: 'https', port: 443, nodePort: 30443 }];
  const nodes = [node(['InternalIP', '10.0.0.2'])];
  const balanced = service({ type: 'LoadBalancer', ports }, [{ ip: '192.0.2.1' }]);
  expect(best({ routes }, balanced)).toEqual({ address: '192.0.2.1', port: '443' });
  const nodePort = service({ type: 'NodePort', ports });
  expect(best({ routes }, nodePort, nodes)).toEqual({ address: 'route.example.com', port: '443' });
  expect(principalHosts(around(nodePort, nodes, { routes }), 'argocd', [])).toEqual(
    expect.arrayContaining(['route.example.com', '10.0.0.2']),
  );
});

test('a ready node is chosen, always the same one, in whatever order nodes arrive', () => {
  const nodePort = service({ type: 'NodePort', ports: [{ name: 'https', port: 443, nodePort: 30443 }] });
  const named = (name: string, ready: string): KubeNode => ({
    metadata: { name },
    status: {
      addresses: [{ type: 'InternalIP', address: `10.0.0.${name}` }],
      conditions: [{ type: 'Ready', status: ready }],
    },
  });
  const nodes = [named('3', 'True'), named('1', 'Unknown'), named('2', 'True')];
  for (const order of [nodes, [...nodes].reverse()]) {
    expect(find(none, nodePort, order)).toEqual({ address: '10.0.0.2', port: '30443' });
  }
});

test('the present address stays as long as it is a candidate: cordoning or rebooting a node moves no fleet', () => {
  const nodePort = service({ type: 'NodePort', ports: [{ name: 'https', port: 443, nodePort: 30443 }] });
  const named = (name: string, { ready = 'True', unschedulable = false } = {}): KubeNode => ({
    metadata: { name },
    spec: { unschedulable },
    status: {
      addresses: [{ type: 'InternalIP', address: `10.0.0.${name}` }],
      conditions: [{ type: 'Ready', status: ready }],
    },
  });
  const address = (nodes: KubeNode[], present?: string) => {
    const found = discoverEndpoint(none, around(nodePort, nodes), 'argocd', present);
    return 'address' in found ? found.address : found.problem;
  };
  const both = [named('1'), named('2')];
  expect(address([named('1', { unschedulable: true }), named('2')])).toBe('10.0.0.1');
  expect(address(both, '10.0.0.2')).toBe('10.0.0.2');
  expect(address([named('1', { ready: 'False' }), named('2')], '10.0.0.1'), 'nobody answers there').toBe('10.0.0.2');
  expect(address([named('1', { ready: 'False' }), named('2', { ready: 'Unknown' })], '10.0.0.2')).toBe('10.0.0.1');
  expect(address(both, '10.0.0.9'), 'the node is gone').toBe('10.0.0.1');
});

test('the order of the addresses of a load balancer does not count', () => {
  const ingress = (...ips: string[]) =>
    service(
      { ports: [{ port: 443 }] },
      ips.map((ip) => ({ ip })),
    );
  const present = '10.0.0.2';
  for (const ips of [
    ['10.0.0.1', present],
    [present, '10.0.0.1'],
  ]) {
    expect(discoverEndpoint(none, around(ingress(...ips)), 'argocd', present)).toMatchObject({ address: present });
  }
});
