import { Gauge, type Registry } from 'prom-client';
import type { Application } from '../lib/argocd/index.ts';

/** Longest value of a label: what comes from clusters is cut. */
const longestValue = 256;

/**
 * Registers the state of the hub's Applications under the names of Argo CD's application controller, which does not run for
 * them on the hub: `argocd_app_info`, `argocd_app_labels`, and the phase of the last operation. One series for each
 * Application and metric, computed at every scrape.
 * @param labels the labels of Applications that `argocd_app_labels` shows; without any the metric is not registered
 */
export function applicationMetrics(
  registry: Registry,
  labels: readonly string[],
  read: () => Iterable<{ readonly application: Application; readonly agent: string | undefined }>,
): void {
  const common = ['namespace', 'name', 'project'] as const;
  const each = <L extends string>(
    name: string,
    help: string,
    more: readonly L[],
    of: (application: Application, agent: string | undefined) => Record<L, string> | undefined,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: [...common, ...more],
      registers: [registry],
      collect() {
        this.reset();
        for (const { application, agent } of read()) {
          const own = of(application, agent);
          if (own !== undefined) {
            const { namespace = '', name: called } = application.metadata;
            const project = text(application.spec.project) || 'default';
            this.set({ namespace, name: called, project, ...own }, 1);
          }
        }
      },
    });
  each(
    'argocd_app_info',
    'The Applications of the hub; always 1',
    [
      'agent_name',
      'autosync_enabled',
      'repo',
      'dest_server',
      'dest_namespace',
      'sync_status',
      'health_status',
      'operation',
    ],
    ({ metadata, spec, status, operation }, agent = '') => {
      const { source, sources, syncPolicy } = spec as Record<string, unknown>;
      const automated = field(syncPolicy, 'automated');
      const first = source ?? (Array.isArray(sources) ? sources[0] : undefined);
      return {
        agent_name: agent,
        autosync_enabled: String(
          automated !== undefined && automated !== null && field(automated, 'enabled') !== false,
        ),
        repo: text(field(first, 'repoURL')),
        dest_server: text(spec.destination?.server ?? spec.destination?.name),
        dest_namespace: text(spec.destination?.namespace),
        sync_status: text(status?.sync?.status) || 'Unknown',
        health_status: text(status?.health?.status) || 'Unknown',
        operation:
          metadata.deletionTimestamp !== undefined ? 'delete' : field(operation, 'sync') !== undefined ? 'sync' : '',
      };
    },
  );
  each(
    'argocd_app_operation_phase',
    'The phase of the last operation of each Application of the hub that has had one; always 1',
    ['phase'],
    ({ status }) => {
      const phase = text(status?.operationState?.phase);
      return phase === '' ? undefined : { phase };
    },
  );
  if (labels.length > 0) {
    const names = labels.map((label) => [label, `label_${label.replaceAll(/[^a-zA-Z0-9_]/g, '_')}`] as const);
    each(
      'argocd_app_labels',
      'Labels of the Applications of the hub; always 1',
      [...new Set(names.map(([, name]) => name))],
      ({ metadata }) =>
        Object.fromEntries(
          names.map(([label, name]) => [name, text((metadata.labels as Record<string, unknown> | undefined)?.[label])]),
        ),
    );
  }
}

function field(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, longestValue) : '';
}
