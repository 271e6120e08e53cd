import type { AgentMode } from '../../lib/auth/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { SharedCluster } from '../testbed/index.ts';
import { Program } from '../testbed/index.ts';
import { type AgentSetup, agentLine } from './command-line.ts';
import { giveAgentCredentials, prepareCluster } from './material.ts';

/** An agent with a cluster of its own. */
export interface AgentCluster<C extends SharedCluster = SharedCluster> {
  readonly name: string;
  readonly mode: AgentMode;
  readonly cluster: C;
  readonly agent: Program;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Ends the agent, then the cluster. */
  stop(): Promise<void>;
}

/** How an agent gets a cluster. */
export interface AgentClusterOptions extends Omit<AgentSetup, 'kubeconfig'>, Partial<Pick<AgentSetup, 'kubeconfig'>> {
  readonly name: string;
  /** Issues its certificate. */
  readonly authority: KeyCertificate;
  /** An executable of argocd-agent that runs instead of this working tree's agent. */
  readonly original?: string | undefined;
  /** Of the agent, besides what it needs anyway. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** Prepares a cluster with Argo CD's kinds and an agent's credentials, and the agent, not started. */
export async function startAgentCluster<C extends SharedCluster>(
  { name, authority, original, environment, ...setup }: AgentClusterOptions,
  start: () => Promise<C>,
): Promise<AgentCluster<C>> {
  const cluster = await start();
  await prepareCluster(cluster.client);
  await giveAgentCredentials(cluster.client, authority, name);
  const { args, ...ports } = await agentLine({ kubeconfig: cluster.kubeconfig, ...setup });
  const agent = new Program(args, environment, original);
  return {
    name,
    mode: setup.mode ?? 'managed',
    cluster,
    agent,
    ...ports,
    async stop() {
      await agent.stop('SIGKILL');
      await cluster.stop();
    },
  };
}
