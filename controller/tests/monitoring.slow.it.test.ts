import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { addonChart, helm, withoutHub } from '../../e2e/hub/index.ts';
import { hastyRules, panelQueriesOf } from '../../e2e/monitoring/expressions.ts';
import { type Prometheus, podNamespace, startPrometheus } from '../../e2e/monitoring/prometheus.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { deployments, type KubeObject, resourceType, type Secret, secrets } from '../../lib/kube/index.ts';
import { createAuthority, tlsSecretData } from '../../lib/pki/index.ts';
import { hubNames, manifestWorks } from '../hub/index.ts';
import { type ControllerProgram, startControllerProgram } from '../testing/controller-program.ts';
import { HubFixture } from '../testing/fixture.ts';
import { installHubCrds, workNames } from '../testing/hub.ts';

// A real Prometheus scrapes a real controller, with the alerts and the dashboard that the chart delivers. The test plays OCM.

const monitoring = (file: string) => join(addonChart, 'files/monitoring', file);
const ns = 'argocd';
const clusters = ['c1', 'c2'] as const;
const day = 24 * 3_600_000;

const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;
type Policy = KubeObject & { spec: object };
const policies = resourceType<Policy>({
  ...admission,
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
});
const bindings = resourceType<Policy>({
  ...admission,
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
});

/** Whether the chart's ServiceMonitor lets the metrics' labels win over those of the pod. */
async function honorLabels(): Promise<boolean> {
  const monitor = ['--show-only', 'templates/controller/servicemonitor.yaml', '--set', 'serviceMonitor.enabled=true'];
  const { spec } = parse(await helm(['template', 'x', addonChart, ...withoutHub(addonChart), ...monitor])) as {
    spec: { endpoints: { honorLabels?: boolean }[] };
  };
  return spec.endpoints[0]?.honorLabels ?? false;
}

describe('Prometheus beside a controller', { tags: 'prometheus' }, () => {
  let hub: SharedCluster;
  let fixture: HubFixture;
  let controller: ControllerProgram;
  let prometheus: Prometheus;

  const start = async (metrics?: number) => {
    controller = await startControllerProgram(hub, 'controller', ['--leader-elect=false'], metrics ? { metrics } : {});
  };
  const hubRuns = (version: string) => {
    const labels = { app: 'argocd-server' };
    const containers = [{ name: 'server', image: `quay.io/argoproj/argocd:v${version}` }];
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
    return fixture.put(deployments, { metadata: { namespace: ns, name: 'argocd-server' }, spec });
  };
  /** As the work agents of both clusters say that what they were given runs. */
  const allAreWell = async () => {
    for (const cluster of clusters) {
      for (const name of workNames) {
        await fixture.reportWork(cluster, name);
      }
    }
  };
  const upToDate = (status: 'True' | 'False', message: RegExp) =>
    fixture.conditionIs([ns, 'fleet'], 'ClustersUpToDate', status, message);

  beforeAll(async () => {
    hub = await borrowCluster({ name: 'hub' });
    await installHubCrds(hub);
    fixture = new HubFixture(hub.client);
    for (const namespace of [ns, 'other']) {
      await fixture.namespace(namespace);
    }
    for (const cluster of clusters) {
      await fixture.managedCluster(cluster);
    }
    await fixture.placement(ns, 'placement', clusters);
    await hubRuns('3.2.6');
    await fixture.gitOpsCluster(ns, 'fleet', 'placement', {
      rolloutStrategy: { type: 'Progressive', progressive: { maxConcurrency: 1, progressDeadline: '3s' } },
    });
    await start();
    await fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
    await allAreWell();
    await upToDate('True', /^2 of 2 clusters have .*v3\.2\.6/);
    prometheus = await startPrometheus({
      targets: { controller: { port: controller.metrics, honorLabels: await honorLabels() } },
      rules: [hastyRules(monitoring('controller-alerts.yaml'))],
    });
  });
  afterAll(async () => {
    await prometheus?.stop();
    await controller?.kill();
    await hub?.stop();
  });

  const firing = (alerts: string[]) => until(async () => expect(await prometheus.firing()).toEqual(alerts));

  test('no alert is raised while all is well', async () => {
    await prometheus.dataOf('gitops_controller_reconciles_done');
    await firing([]);
  });

  test('while a rollout has stopped and a Placement is missing, every panel has data, and the alerts are raised', async () => {
    await hubRuns('3.3.0');
    await upToDate('False', /is stopped: 0 of 2 clusters done, failed: \[c1\], 1 to follow/);
    await fixture.gitOpsCluster(ns, 'another', 'nowhere');
    await firing(['GitOpsClusterNotReady', 'GitOpsRolloutClustersFailed', 'GitOpsRolloutStopped']);
    const queries = panelQueriesOf(monitoring('controller-dashboard.json'));
    expect(queries.length).toBeGreaterThan(10);
    for (const { expr, legendFormat } of queries) {
      // What stands in for nothing is no data.
      const expression = expr.replace(/ or (on\(\) )?vector\(0\)$/, '');
      const labels = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, label = '']) => label);
      for (const { metric } of await prometheus.dataOf(expression)) {
        expect(metric.job ?? 'controller', expression).toBe('controller');
        expect(Object.keys(metric), expression).toEqual(expect.arrayContaining(labels));
        if (labels.includes('namespace')) {
          expect(metric.namespace, expression).toBe(ns);
        }
      }
    }
    const [stopped] = await prometheus.query('ALERTS{alertname="GitOpsRolloutStopped"}');
    expect(stopped?.metric).toMatchObject({ namespace: ns, name: 'fleet', pod: 'controller-0' });
    expect(podNamespace).not.toBe(ns);

    await fixture.placement(ns, 'nowhere', []);
    await until('the rollout to go on to its end', async () => {
      await allAreWell();
      return (await fixture.condition(ns, 'fleet', 'ClustersUpToDate'))?.status === 'True';
    });
    await firing([]);
  });

  test('a certificate of the hub that nobody renews', async () => {
    const authority = await createAuthority({ commonName: 'our own', lifetimeMs: 3 * day });
    const own: Secret = {
      metadata: { namespace: 'other', name: hubNames.authority },
      type: 'kubernetes.io/tls',
      data: tlsSecretData(authority),
    };
    await hub.client.create(secrets, own);
    await firing(['GitOpsHubCertificateExpires']);
    const [alert] = await prometheus.query('ALERTS{alertname="GitOpsHubCertificateExpires"}');
    expect(alert?.metric).toMatchObject({ namespace: 'other', secret: hubNames.authority });
    await hub.client.delete(secrets, own.metadata);
    await firing([]);
  });

  test('a cluster whose works the API server refuses', async () => {
    const name = 'no-works';
    const works = { apiGroups: ['work.open-cluster-management.io'], apiVersions: ['*'], resources: ['manifestworks'] };
    await fixture.put(policies, {
      metadata: { name },
      spec: {
        matchConstraints: { resourceRules: [{ ...works, operations: ['CREATE', 'UPDATE'] }] },
        validations: [{ expression: 'false', message: 'no works today' }],
      },
    });
    await fixture.put(bindings, { metadata: { name }, spec: { policyName: name, validationActions: ['Deny'] } });
    const work = { namespace: 'c2', name: 'argocd-agent-addon-agent' };
    const touch = { metadata: { labels: { touched: 'yes' } } };
    await until(async () =>
      expect(hub.client.mergePatch(manifestWorks, work, touch)).rejects.toThrow(/no works today/),
    );
    await hub.client.delete(manifestWorks, work);
    await firing(['GitOpsClusterNotReady', 'GitOpsControllerReconcileFails']);
    await hub.client.delete(bindings, { name });
    await hub.client.delete(policies, { name });
    await until('the work again', () => hub.client.get(manifestWorks, work));
    await allAreWell();
    await firing([]);
  });

  test('the controller is gone', async () => {
    const { metrics } = controller;
    await controller.kill();
    await firing(['GitOpsControllerDown']);
    await start(metrics);
    await firing([]);
  });
});
