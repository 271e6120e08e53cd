export type { Peer, ReplicaDirectory } from './directory.ts';
export { leaderLabels } from './leadership.ts';
export { longestWriteMs, type ReplicaTiming, replicaAnnotations, replicaLabels } from './replica-lease.ts';
export { Replicas } from './start.ts';
export type { FencedKind } from './write-fence.ts';
