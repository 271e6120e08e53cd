import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../lib/base/testing.ts';
import { freePort, spawnSupervised } from '../testbed/index.ts';

/** What a query answers: the labels and the value of each series. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A Prometheus on a loopback address. */
export interface Prometheus {
  /** @throws Error with Prometheus' own message about the expression */
  query(expression: string): Promise<Sample[]>;
  /** What a panel of a dashboard shows, as soon as it shows anything; rates are those of the last 10 s. */
  dataOf(expression: string): Promise<Sample[]>;
  /** The names of the alerts that are raised, in order. */
  firing(): Promise<string[]>;
  stop(): Promise<void>;
}

/** Where metrics are that {@link startPrometheus} scrapes. */
export interface ScrapeTarget {
  /** Of 127.0.0.1. */
  readonly port: number;
  /** Whether labels of the metrics win over those of the target, as `honorLabels` of a ServiceMonitor. Default: no. */
  readonly honorLabels?: boolean;
}

/** The namespace of the targets' pods, as Prometheus is told. */
export const podNamespace = 'pods-are-here';

/**
 * Starts Prometheus; it answers queries when this resolves. It scrapes its targets and itself, and evaluates its rules, twice a second.
 * Targets have the labels that the Prometheus operator gives them.
 * @throws Error with its log when it ends or does not become ready
 */
export async function startPrometheus(options: {
  /** By the name of their job. */
  readonly targets: Readonly<Record<string, ScrapeTarget>>;
  /** Files of rules, as text. */
  readonly rules: readonly string[];
}): Promise<Prometheus> {
  const dir = await mkdtemp(join(tmpdir(), 'prometheus-'));
  const port = await freePort();
  const files = options.rules.map((_, index) => join(dir, `rules-${index}.yaml`));
  await Promise.all(files.map((file, index) => writeFile(file, options.rules[index] ?? '')));
  const config = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: files,
    scrape_configs: Object.entries<ScrapeTarget>({ ...options.targets, prometheus: { port } }).map(([job, target]) => ({
      job_name: job,
      honor_labels: target.honorLabels ?? false,
      static_configs: [
        {
          targets: [`127.0.0.1:${target.port}`],
          labels: { namespace: podNamespace, pod: `${job}-0`, service: job, container: job, endpoint: 'metrics' },
        },
      ],
    })),
  };
  const logFile = join(dir, 'log');
  await writeFile(join(dir, 'config.yaml'), JSON.stringify(config));
  const address = `127.0.0.1:${port}`;
  const args = [
    `--config.file=${dir}/config.yaml`,
    `--storage.tsdb.path=${dir}/data`,
    `--web.listen-address=${address}`,
  ];
  const process = await spawnSupervised('prometheus', args, { logFile, cwd: dir });
  const stop = async () => {
    await process.kill();
    await rm(dir, { recursive: true });
  };
  try {
    await until('Prometheus is ready', async () => {
      return !process.running || (await fetch(`http://${address}/-/ready`)).ok;
    });
    if (!process.running) {
      throw new Error('Prometheus has ended');
    }
  } catch (error) {
    const log = await readFile(logFile, 'utf8');
    await stop();
    throw new Error(`Prometheus cannot be used:\n${log}`, { cause: error });
  }
  const query = async (expression: string): Promise<Sample[]> => {
    const answer = await fetch(`http://${address}/api/v1/query`, {
      method: 'POST',
      body: new URLSearchParams({ query: expression }),
    });
    const { status, error, data } = (await answer.json()) as {
      status: string;
      error?: string;
      data?: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (status !== 'success' || data === undefined) {
      throw new Error(`${expression}: ${error}`);
    }
    return data.result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
  };
  return {
    query,
    dataOf: (expression) => {
      const asked = expression.replaceAll('$__rate_interval', '10s');
      return until(`data of ${asked}`, async () => {
        const samples = await query(asked);
        return samples.length > 0 && samples;
      });
    },
    async firing() {
      const alerts = await query('ALERTS{alertstate="firing"}');
      return alerts.map(({ metric }) => metric.alertname ?? '').toSorted();
    },
    stop,
  };
}
