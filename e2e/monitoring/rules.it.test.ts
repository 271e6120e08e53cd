import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addonChart, agentChart } from '../hub/index.ts';
import { type AlertRule, alertsIn } from './expressions.ts';
import { faults, phases } from './faults.ts';

// Prometheus' own evaluation of the alerts that the charts deliver, over hours that last milliseconds.

const files = [
  join(addonChart, 'files/monitoring/principal-alerts.yaml'),
  join(addonChart, 'files/monitoring/controller-alerts.yaml'),
  join(agentChart, 'files/monitoring/agent-alerts.yaml'),
];
const rules: AlertRule[] = files.flatMap(alertsIn);
const minutes = phases.well + phases.fault + phases.after;

test('every alert has a fault', () => {
  expect(rules.map(({ alert }) => alert).toSorted()).toEqual(Object.keys(faults).toSorted());
});

describe('promtool', { tags: 'prometheus' }, () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'promtool-'));
  });
  afterAll(() => rm(dir, { recursive: true }));

  const run = async (args: readonly string[]) => {
    const { stdout, stderr } = await promisify(execFile)('promtool', args).catch((error: Error) => {
      throw new Error(`${error.message}\n${'stdout' in error ? error.stdout : ''}`);
    });
    return stdout + stderr;
  };

  test('finds the rules in order', async () => {
    expect(await run(['check', 'rules', ...files])).toMatch(/SUCCESS/);
  });

  test.each(Object.entries(faults))(
    '%s is raised by its fault, and only then',
    async (name, { series, alerts = 1 }) => {
      const firing = `count(ALERTS{alertname="${name}", alertstate="firing"})`;
      const at = (minute: number, count: number) => ({
        expr: firing,
        eval_time: `${minute}m`,
        exp_samples: count === 0 ? [] : [{ labels: '{}', value: count }],
      });
      const tested = {
        rule_files: files,
        evaluation_interval: '1m',
        tests: [
          {
            interval: '1m',
            input_series: Object.entries(series).map(([text, values]) => ({ series: text, values })),
            promql_expr_test: [at(phases.well - 1, 0), at(phases.well + phases.fault - 1, alerts), at(minutes - 1, 0)],
          },
        ],
      };
      const file = join(dir, `${name}.yaml`);
      await writeFile(file, JSON.stringify(tested));
      expect(await run(['test', 'rules', file])).toMatch(/SUCCESS/);
    },
  );
});
