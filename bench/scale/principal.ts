import { join } from 'node:path';
import { type PrincipalSetup, principalLine } from '../../e2e/pair/index.ts';
import { otherPrograms } from '../other.ts';
import { inTwoGibibytes, isWell, type MeasuredProgram, programIn, startMeasured } from '../program.ts';
import type { Hub } from './hub.ts';

/** The principal under test, a process of its own. */
export interface Principal extends MeasuredProgram {
  /** Where agents connect. */
  readonly server: string;
  /** The sum of a metric over all its labels. */
  metric(name: string): Promise<number>;
}

/**
 * Starts the principal as an installation does, and resolves when it serves agents. `PRINCIPAL_NODE_OPTIONS` replaces the
 * options of its Node.js, for profiles and other limits; `PRINCIPAL_CMD` the whole program.
 * @throws Error with the end of its log when it ends instead
 */
export async function startPrincipal(hub: Hub, setup: Partial<PrincipalSetup> = {}): Promise<Principal> {
  const line = await principalLine({ kubeconfig: hub.cluster.kubeconfig, redis: hub.redisPort, ...setup });
  const { port, metricsPort, healthPort } = line;
  const other = otherPrograms().principal;
  const program = await startMeasured({
    command: [...(other === undefined ? programIn('argocd-agent') : ([other] as const)), ...line.args],
    logFile: join(hub.cluster.dir, `principal-${port}.log`),
    nodeOptions: process.env.PRINCIPAL_NODE_OPTIONS ?? inTwoGibibytes,
    isReady: () => isWell(healthPort),
  });
  return {
    ...program,
    server: `127.0.0.1:${port}`,
    async metric(name) {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  };
}
