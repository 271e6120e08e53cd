import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { configMaps, type KubeObject, namespaces, resourceType, secrets } from '../../lib/kube/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import { freePort, Program } from '../pair/index.ts';
import type { SharedCluster } from '../testbed/index.ts';

const { PROMETHEUS_OPERATOR_BIN: executable = '', PROMETHEUS_OPERATOR_SOURCE: source = '' } = process.env;

/** Where the test's objects of the operator are. */
export const monitoringNamespace = 'monitoring';

const prometheuses = resourceType<KubeObject & { spec: object }>({
  group: 'monitoring.coreos.com',
  version: 'v1',
  kind: 'Prometheus',
  plural: 'prometheuses',
  namespaced: true,
});

/** Starts the operator's own program for a cluster, with its CRDs and a Prometheus that takes every object of its namespace. */
export async function startPrometheusOperator({ client, kubeconfig }: SharedCluster): Promise<Program> {
  await installCrds(client, await readCrds(join(source, 'example/prometheus-operator-crd')));
  await client.create(namespaces, { metadata: { name: monitoringNamespace } });
  const all = { serviceMonitorSelector: {}, podMonitorSelector: {}, ruleSelector: {} };
  await client.create(prometheuses, {
    metadata: { namespace: monitoringNamespace, name: 'fleet' },
    spec: { ...all, replicas: 1, serviceAccountName: 'prometheus' },
  });
  const program = new Program(
    [`--web.listen-address=127.0.0.1:${await freePort()}`],
    { KUBECONFIG: kubeconfig },
    executable,
  );
  program.start();
  await program.says(/successfully synced all caches/);
  return program;
}

/** One of Prometheus' scrape_configs, loosely typed. */
export interface ScrapeConfig {
  job_name: string;
  kubernetes_sd_configs?: object;
}

/** What the operator has made for its Prometheus. */
export interface MadeForPrometheus {
  readonly scraped: readonly ScrapeConfig[];
  /** Files of rules, by name. */
  readonly rules: Readonly<Record<string, string>>;
}

/** Reads it; empty while the operator has made nothing yet. */
export async function madeForPrometheus({ client }: SharedCluster): Promise<MadeForPrometheus> {
  const namespace = monitoringNamespace;
  const secret = await client.get(secrets, { namespace, name: 'prometheus-fleet' });
  const packed = Buffer.from(secret?.data?.['prometheus.yaml.gz'] ?? '', 'base64');
  const configuration = packed.length === 0 ? '' : gunzipSync(packed).toString();
  const { scrape_configs: scraped = [] } = (parse(configuration) ?? {}) as { scrape_configs?: ScrapeConfig[] };
  const files = await client.get(configMaps, { namespace, name: 'prometheus-fleet-rulefiles-0' });
  return { scraped, rules: files?.data ?? {} };
}
