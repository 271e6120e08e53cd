/** What tests of other rooms need of the simulated world: a cluster's API server, a time that is theirs, whole histories. */
export {
  type Collection,
  type Kinds,
  Refused,
  SimulatedCluster,
  type SimulatedObject,
} from './simulation/cluster.ts';
export { type Audit, ClusterStore, type ExecutedWrite } from './simulation/cluster-store.ts';
export { runSimulator } from './simulation/command.ts';
export { pickOne, SeededDice } from './simulation/dice.ts';
export { principalNamespace } from './simulation/layout.ts';
export { Machine } from './simulation/machine.ts';
export type { Answering, PrincipalProgram } from './simulation/network.ts';
export { type OwnedKind, type SimulatedEngine, startPrincipalProgram } from './simulation/programs.ts';
export { type HistoryOutcome, simulate } from './simulation/simulate.ts';
export { VirtualTime } from './simulation/virtual-time.ts';
export type { HubSide, Scene, Site } from './simulation/world.ts';
