export { connectionOf, runDaemon } from './daemon.ts';
export { daemonFlags, hubFlags } from './flags.ts';
export { areIdle, runQueues } from './queues.ts';
