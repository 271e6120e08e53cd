import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { toolPath } from '../tools/index.ts';

const run = promisify(execFile);

/** Folder of the chart that users install. */
export const addonChart = new URL('../../charts/argocd-agent-addon', import.meta.url).pathname;

/** Folder of the chart with an agent for a cluster that is not enrolled through OCM. */
export const agentChart = new URL('../../charts/argocd-agent-agent', import.meta.url).pathname;

/** Folder of the chart with a principal for a hub without OCM. */
export const principalChart = new URL('../../charts/argocd-agent-principal', import.meta.url).pathname;

/** Folder of the chart of the basic pull model. */
export const pullChart = new URL('../../charts/argocd-pull-integration', import.meta.url).pathname;

/** Folder of the chart with the hub's own Argo CD, which is part of the other one and also stands alone. */
export const hubArgoCdChart = new URL('../../charts/argocd-agent-addon/charts/argocd-hub', import.meta.url).pathname;

/**
 * What `helm template` of a chart needs besides the values of a test: it cannot look whether the hub has an Argo CD and a principal.
 * Here it has neither. Any value of the test counts before these.
 */
export function withoutHub(chart: string): string[] {
  const values = { 'hubArgoCD.install': true, 'principal.enabled': true };
  const isAddon = basename(chart).startsWith(basename(addonChart));
  return isAddon ? Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${value}`]) : [];
}

/** What a Helm run is given. */
export interface HelmOptions {
  /** Kubeconfig of the cluster; none for commands that need none. */
  kubeconfig?: string;
  /** Helm 3, whatever `HELM_VERSION` is. */
  major?: 3;
  signal?: AbortSignal;
}

/** Helm has ended with an error; the message is what it printed. */
export class HelmError extends Error {
  readonly args: readonly string[];

  constructor(args: readonly string[], stderr: string) {
    super(`helm ${args[0]}: ${stderr.trim()}`);
    this.name = 'HelmError';
    this.args = args;
  }
}

/**
 * Runs Helm and returns what it prints.
 * @throws HelmError when it fails
 */
export async function helm(args: readonly string[], options: HelmOptions = {}): Promise<string> {
  const { signal, kubeconfig = '/dev/null', major } = options;
  const tool = await toolPath(major === 3 ? 'helm-3' : 'helm');
  try {
    const { stdout } = await run(tool, [...args], {
      env: { ...process.env, KUBECONFIG: kubeconfig },
      maxBuffer: 32 * 1024 * 1024,
      ...(signal && { signal }),
    });
    return stdout;
  } catch (error) {
    signal?.throwIfAborted();
    throw new HelmError(args, (error as { stderr?: string }).stderr ?? String(error));
  }
}
