export { connectionOf, runDaemon } from './daemon.ts';
export { daemonFlags, hubFlags } from './flags.ts';
export {
  controllerRegistry,
  type ObservedCertificate,
  type ObservedCondition,
  type ObservedRollout,
} from './metrics.ts';
export { logOptionsOf } from './original-flags.ts';
export { areIdle, runQueues } from './queues.ts';
