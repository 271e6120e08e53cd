export type { Peer, ReplicaDirectory } from './directory.ts';
