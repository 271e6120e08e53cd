/** What users and clusters do to a fleet under load, and how it is judged. */
export { BusyController, type BusyControllerOptions } from './application-controller.ts';
export {
  type ChaosFinding,
  checkApplications,
  type GoneCopy,
  type OperationRun,
  type SeenApplications,
  type SeenSides,
} from './invariants.ts';
export { Ledger, type RequestedOperation, type WantedApplication } from './ledger.ts';
export { type Talker, tracesOf } from './traces.ts';
export { type UsedAgent, type UsedFleet, Users, type UsersOptions } from './users.ts';
