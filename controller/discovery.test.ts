import { expect, test } from 'vitest';
import type { KubeNode, Service } from '../lib/kube/index.ts';
import { discoverEndpoint, endpointText, principalHosts, resourceProxyHosts } from './discovery.ts';

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
const find = (written: { address: string; port: string }, found?: Service, nodes: KubeNode[] = []) =>
  discoverEndpoint(written, found, nodes, 'argocd');

test('what the user wrote is used as it is', () => {
  expect(find({ address: 'a', port: '1' })).toEqual({ address: 'a', port: '1' });
});

test('a load balancer: host name before IP address, the serving port, what the user wrote of the two', () => {
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
  expect(find(none, nodePort, [])).toEqual({ problem: expect.stringContaining('no node has an InternalIP') });
});

test('what is missing is named', () => {
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

test('certificates name every way to the principal and the resource proxy, each once', () => {
  const nodePort = service({ type: 'NodePort', ports: [] }, [{ hostname: 'lb', ip: '9.9.9.9' }]);
  const hosts = principalHosts(
    nodePort,
    [node(['InternalIP', '10.0.0.2']), node(['InternalIP', '10.0.0.3'])],
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
