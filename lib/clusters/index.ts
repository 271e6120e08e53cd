/** What programs know of Argo CD's cluster Secrets of agents, and of the principal's records of their connections. */
export {
  agentClusterSecretName,
  type ClusterEntry,
  clusterConfigIn,
  clusterSecret,
  enrolledClusterSecret,
  identityIn,
  newClusterSecret,
  outdatedFields,
  type ProxyIdentity,
  parseProxyIdentity,
  selfRegisteredAgent,
  selfRegisteredLabel,
  tokenOf,
  withIdentity,
} from './cluster-secret.ts';
export { type ConnectionRecord, connectionRecord, connectionSelector } from './connection.ts';
