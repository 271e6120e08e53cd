import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { versionInfo } from './version.ts';

/** A registry with the process's own metrics and `argocd_agent_build_info`. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { version, gitRevision } = versionInfo();
  new Gauge({
    name: 'argocd_agent_build_info',
    help: 'Version and revision of the program; always 1',
    labelNames: ['version', 'git_revision'],
    registers: [registry],
  }).set({ version, git_revision: gitRevision }, 1);
  return registry;
}
