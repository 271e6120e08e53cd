import type { Cluster } from '../../e2e/testbed/index.ts';
import { usageOf } from '../scale/process-meter.ts';

/** Seconds of processor time. */
export interface Spent {
  readonly apiServer: number;
  readonly etcd: number;
  /** This process. */
  readonly own: number;
}

/** Starts to measure the hub and this process. Each call of the returned function returns the processor time since the start. */
export async function meterOf(hub: Cluster): Promise<() => Promise<Spent>> {
  const now = async (): Promise<Spent> => {
    const [apiServer, etcd, own] = await Promise.all(
      [hub.apiServer.pid, hub.etcd.pid, process.pid].map(async (pid) => (await usageOf(pid)).cpuSeconds),
    );
    return { apiServer: apiServer ?? 0, etcd: etcd ?? 0, own: own ?? 0 };
  };
  const before = await now();
  return async () => {
    const after = await now();
    return {
      apiServer: after.apiServer - before.apiServer,
      etcd: after.etcd - before.etcd,
      own: after.own - before.own,
    };
  };
}
