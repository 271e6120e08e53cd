import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
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

/** A request to the API server. `status` is 0 when no answer came. */
interface KubeRequest {
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
  readonly waitedSeconds: number;
}

/** Counts and times requests to the API server, under the names of Kubernetes's own client. */
export function kubeRequestMetrics(registry: Registry, host: () => string): (request: KubeRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server',
    labelNames: ['code', 'method', 'host'],
    registers,
  });
  const duration = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Seconds until the API server responds',
    labelNames: ['verb', 'host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30],
    registers,
  });
  const limiter = new Histogram({
    name: 'rest_client_rate_limiter_duration_seconds',
    help: 'Seconds that requests wait because of the rate limit (ARGOCD_AGENT_KUBE_QPS)',
    labelNames: ['verb', 'host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30],
    registers,
  });
  return ({ method, status, seconds, waitedSeconds }) => {
    const labels = { verb: method, host: host() };
    requests.inc({ code: status === 0 ? '<error>' : String(status), method, host: labels.host });
    duration.observe(labels, seconds);
    limiter.observe(labels, waitedSeconds);
  };
}
