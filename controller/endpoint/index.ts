export { hasReadyEndpoint, type PrincipalEndpoint, type ServiceExposure } from './candidates.ts';
export { discoverEndpoint, endpointText, principalHosts, principalServices, resourceProxyHosts } from './discovery.ts';
export { EndpointCaches } from './endpoint-caches.ts';
