export { connectionOf, type ObservedCondition, runDaemon } from './daemon.ts';
export { daemonFlags, hubFlags } from './flags.ts';
export { logOptionsOf } from './original-flags.ts';
export { areIdle, runQueues } from './queues.ts';
