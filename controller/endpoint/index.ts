export { hasReadyEndpoint, type PrincipalEndpoint, type ServiceExposure } from './candidates.ts';
export {
  discoverEndpoint,
  endpointText,
  principalHosts,
  principalServices,
  resourceProxyAddress,
} from './discovery.ts';
export { EndpointCaches } from './endpoint-caches.ts';
