/** What tests of other rooms need of the simulated world: a cluster's API server, and a time that is theirs. */
export { Cluster, type Collection, type Kinds } from './simulation/cluster.ts';
export { VirtualTime } from './simulation/virtual-time.ts';
