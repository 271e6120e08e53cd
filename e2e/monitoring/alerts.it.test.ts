import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { addonChart, agentChart } from '../hub/helm.ts';
import { toolPath } from '../tools/index.ts';
import { alertsIn } from './expressions.ts';

const run = promisify(execFile);

/** An alert, the series that let it fire, and how long that takes. Values are one a minute; `stays` are never wrong. */
interface Fault {
  readonly alert: string;
  /** Series with the values of the fault, and those after it: `_` for none. */
  readonly series: Readonly<Record<string, readonly [bad: string, good: string]>>;
  /** Minutes of the fault until the alert must fire. */
  readonly within: number;
  /** How many alerts fire. Default 1. */
  readonly alerts?: number;
}

/** Seconds before a certificate expires that never comes near its end in a test. */
const far = 30 * 86_400;
const agents = ['a', 'b', 'c', 'd'].map((name) => `argocd_principal_agent_connected{agent_name="${name}"}`);
const bucket = (le: string) =>
  `argocd_principal_propagation_delay_seconds_bucket{direction="to_cluster",resource_type="application",le="${le}"}`;
const proxied = (name: string, labels = '') => `argocd_principal_resource_proxy_${name}_total{agent_name="a"${labels}}`;
const day = 86_400;

const faults: readonly Fault[] = [
  { alert: 'ArgoCDAgentPrincipalDown', series: { argocd_principal_connected_agents: ['_', '1'] }, within: 7 },
  {
    alert: 'ArgoCDAgentDisconnected',
    series: { 'argocd_principal_agent_connected{agent_name="a"}': ['0', '1'] },
    within: 12,
  },
  {
    alert: 'ArgoCDAgentsManyDisconnected',
    series: Object.fromEntries(agents.map((one, i) => [one, [i < 2 ? '0' : '1', '1']])),
    within: 7,
  },
  {
    alert: 'ArgoCDAgentChangesNotDelivered',
    series: { 'argocd_principal_oldest_unsent_change_age_seconds{agent_name="a"}': ['301', '0'] },
    within: 7,
  },
  {
    alert: 'ArgoCDAgentDeliverySlow',
    series: {
      [bucket('1')]: ['+0', '+10'],
      [bucket('60')]: ['+0', '+10'],
      [bucket('300')]: ['+10', '+10'],
      [bucket('+Inf')]: ['+10', '+10'],
    },
    within: 20,
  },
  {
    alert: 'ArgoCDAgentEventsFail',
    series: { 'principal_errors{resource_type="application"}': ['+1', '+0'] },
    within: 20,
  },
  {
    alert: 'ArgoCDAgentEventTooLarge',
    series: {
      'argocd_principal_event_writer_events_discarded_total{agent_name="a",event_type="create",resource_type="application"}':
        ['+1', '+0'],
    },
    within: 4,
  },
  {
    alert: 'ArgoCDAgentLoginsRefused',
    series: { 'argocd_principal_refused_logins_total{reason="certificate"}': ['+1', '+0'] },
    within: 20,
  },
  {
    alert: 'ArgoCDAgentQuotaExceeded',
    series: { 'argocd_principal_quota_refusals_total{agent_name="a",limit="objects"}': ['+1', '+0'] },
    within: 4,
  },
  {
    alert: 'ArgoCDAgentHubCertificateExpires',
    series: {
      'argocd_principal_certificate_expiration_timestamp_seconds{certificate="server"}': [`${6 * day}`, `${far}`],
      'argocd_principal_certificate_expiration_timestamp_seconds{certificate="authority"}': [`${far}`, `${far}`],
    },
    within: 63,
  },
  { alert: 'ArgoCDAgentRedisDisconnected', series: { argocd_principal_redis_connected: ['0', '1'] }, within: 12 },
  {
    alert: 'ArgoCDAgentLiveAccessFails',
    series: {
      [proxied('requests')]: ['+10', '+10'],
      [proxied('errors', ',reason="timeout"')]: ['+5', '+0'],
      [proxied('errors', ',reason="agent_error"')]: ['+5', '+5'],
    },
    within: 20,
  },
  {
    alert: 'GitOpsControllerDown',
    series: { 'gitops_controller_reconciles_done{queue="clusters"}': ['_', '1'] },
    within: 12,
  },
  {
    alert: 'GitOpsControllerReconcileFails',
    series: { 'gitops_controller_keys_retrying{queue="clusters"}': ['2', '0'] },
    within: 17,
  },
  {
    alert: 'GitOpsClusterNotReady',
    series: { 'gitops_controller_condition{namespace="argocd",name="fleet",type="Ready",status="False"}': ['1', '_'] },
    within: 17,
  },
  {
    alert: 'GitOpsRolloutStopped',
    series: { 'gitops_controller_rollout_stopped{namespace="argocd",name="fleet"}': ['1', '0'] },
    within: 7,
  },
  {
    alert: 'GitOpsRolloutClustersFailed',
    series: {
      'gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="TimeOut"}': ['3', '0'],
      'gitops_controller_rollout_clusters{namespace="argocd",name="fleet",phase="Waiting"}': ['3', '3'],
    },
    within: 17,
  },
  {
    alert: 'GitOpsHubCertificateExpires',
    series: {
      'gitops_controller_certificate_expiration_timestamp_seconds{namespace="argocd",secret="ca"}': [
        `${6 * day}`,
        `${far}`,
      ],
    },
    within: 63,
  },
  { alert: 'ArgoCDAgentNotConnected', series: { argocd_agent_connection_status: ['0', '1'] }, within: 12 },
  {
    alert: 'ArgoCDAgentReportsNotDelivered',
    series: { argocd_agent_oldest_unsent_change_age_seconds: ['301', '0'] },
    within: 7,
  },
  {
    alert: 'ArgoCDAgentClientCertificateExpires',
    series: {
      'argocd_agent_certificate_expiration_timestamp_seconds{certificate="client"}': [`${3 * 3600}`, `${far}`],
      'argocd_agent_certificate_expiration_timestamp_seconds{certificate="authority"}': ['1', '1'],
    },
    within: 18,
  },
  { alert: 'ArgoCDAgentClusterRedisDisconnected', series: { argocd_agent_redis_connected: ['0', '1'] }, within: 12 },
];

/** Minutes of health before and after a fault: the longest range of an expression, and what a rate still sees. */
const calm = 20;
const files = [
  join(addonChart, 'files/monitoring/principal-alerts.yaml'),
  join(addonChart, 'files/monitoring/controller-alerts.yaml'),
  join(agentChart, 'files/monitoring/agent-alerts.yaml'),
];

let folder = '';
let promtool = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'alerts-'));
  promtool = await toolPath('promtool');
}, 900_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Values in promtool's notation: constant, growing by a step a minute, or none. */
function values(text: string, minutes: number, start: number): { notation: string; end: number } {
  if (text === '_') {
    return { notation: `_x${minutes}`, end: start };
  }
  if (text.startsWith('+')) {
    const end = start + Number(text) * minutes;
    return { notation: `${start + Number(text)}${text}x${minutes - 1}`, end };
  }
  return { notation: `${text}x${minutes - 1}`, end: start };
}

function testOf({ alert, series, within, alerts = 1 }: Fault) {
  const inputs = Object.entries(series).map(([name, [bad, good]]) => {
    let end = 0;
    const parts: string[] = [];
    for (const [text, minutes] of [
      [good, calm],
      [bad, within],
      [good, 2 * calm],
    ] as const) {
      const part = values(text, minutes, end);
      parts.push(part.notation);
      end = part.end;
    }
    return { series: name, values: parts.join(' ') };
  });
  const firing = (minute: number, count: number) => ({
    expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) or vector(0)`,
    eval_time: `${minute}m`,
    exp_samples: [{ labels: '{}', value: count }],
  });
  return {
    name: alert,
    interval: '1m',
    input_series: inputs,
    promql_expr_test: [firing(calm - 1, 0), firing(calm + within - 1, alerts), firing(calm + within + 2 * calm - 1, 0)],
  };
}

async function check(tests: readonly object[]): Promise<string> {
  const rules: string[] = [];
  for (const [i, file] of files.entries()) {
    rules.push(join(folder, `rules-${i}.yaml`));
    await writeFile(rules[i] ?? '', await readFile(file));
  }
  const path = join(folder, 'tests.yaml');
  await writeFile(path, stringify({ rule_files: rules, evaluation_interval: '1m', tests }));
  const { stdout, stderr } = await run(promtool, ['test', 'rules', path]).catch((error) => error);
  return `${stdout}${stderr}`;
}

test('promtool takes the rules', async () => {
  const { stdout } = await run(promtool, ['check', 'rules', '--lint-fatal', ...files]);
  expect(stdout).toContain('SUCCESS');
});

test('every alert has a fault here', () => {
  const known = files.flatMap((file) => alertsIn(file).map(({ alert }) => alert));
  expect(faults.map(({ alert }) => alert).toSorted()).toEqual(known.toSorted());
});

test('every alert fires in its fault and ends after it', async () => {
  const output = await check(faults.map(testOf));
  expect(output).not.toContain('FAILED');
  expect(output).toContain('SUCCESS');
});

test('a fault that does not happen would be noticed', async () => {
  const [first] = faults;
  const series = { argocd_principal_connected_agents: ['1', '1'] as const };
  expect(await check([testOf({ ...(first as Fault), series })])).toContain('FAILED');
});
