/** What tests of other rooms need of the simulated world: a cluster's API server, a time that is theirs, whole histories. */
export {
  type Collection,
  type Kinds,
  Refused,
  SimulatedCluster,
  type SimulatedObject,
} from './cluster.ts';
export { type Audit, ClusterStore, type ExecutedWrite } from './cluster-store.ts';
export { runSimulator, type TellerOptions } from './command.ts';
export { pickOne, SeededDice } from './dice.ts';
export { principalNamespace } from './layout.ts';
export { Machine } from './machine.ts';
export type { Answering, PrincipalProgram } from './network.ts';
export { type OwnedKind, type SimulatedEngine, startPrincipalProgram } from './programs.ts';
export { type HistoryOutcome, simulate } from './simulate.ts';
export { VirtualTime } from './virtual-time.ts';
export type { HubSide, Scene, Site } from './world.ts';
