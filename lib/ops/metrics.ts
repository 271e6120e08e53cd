import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { instruments } from './instruments.ts';
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
  const { counter, histogram } = instruments(registry);
  const requests = counter('rest_client_requests_total', 'Requests to the API server', ['code', 'method', 'host']);
  const duration = histogram(
    'rest_client_request_duration_seconds',
    'Seconds until the API server responds',
    ['verb', 'host'],
    [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30],
  );
  const limiter = histogram(
    'rest_client_rate_limiter_duration_seconds',
    'Seconds that requests wait because of the rate limit (ARGOCD_AGENT_KUBE_QPS)',
    ['verb', 'host'],
    [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30],
  );
  return ({ method, status, seconds, waitedSeconds }) => {
    const labels = { verb: method, host: host() };
    requests.inc({ code: status === 0 ? '<error>' : String(status), method, host: labels.host });
    duration.observe(labels, seconds);
    limiter.observe(labels, waitedSeconds);
  };
}
