/** What tests of other rooms need of the simulated world: a cluster's API server, and a time that is theirs. */
export { type Collection, type Kinds, SimulatedCluster } from './simulation/cluster.ts';
export { VirtualTime } from './simulation/virtual-time.ts';
