export {
  type ClusterCertificates,
  type ClusterConcern,
  type ClusterReport,
  type ClusterSummary,
  healthOf,
  type LostCluster,
  type Trouble,
} from './cluster-report.ts';
export { ClusterReports } from './cluster-reports.ts';
export { currentOwnerOf } from './current-owner.ts';
export { Ownership } from './ownership.ts';
export type { ClusterSelection } from './selection.ts';
