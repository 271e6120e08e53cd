import { timeoutSignal } from '../../lib/base/index.ts';
import { KubeClient } from '../../lib/kube/index.ts';
import { command, createLogger, fleetEvents, watchCertificates } from '../../lib/ops/index.ts';
import { Controller } from '../controller.ts';
import { connectionOf, logOptionsOf, runDaemon } from '../daemon/index.ts';
import { clusterLabelsSchema, rolloutStrategySchema } from '../spec/index.ts';
import { cleanUp } from './clean-up.ts';
import { deliveryOf, jsonOf } from './delivery-flags.ts';
import { controllerFlags } from './flags.ts';

/** Lease of argocd-pull-integration's controller, so that only one of the two runs on a hub. */
const leaseName = '7310a56a.open-cluster-management.io';

/** The command that runs the controller until aborted. */
export const controllerCommand = command({
  name: 'controller',
  summary: 'Enroll the managed clusters that GitOpsClusters select (the default command)',
  flags: controllerFlags,
  ignoresArguments: true,
  run: async (flags, { signal, env, parsed }) => {
    const logger = createLogger({ ...logOptionsOf(flags), name: 'gitops-controller' });
    for (const warning of parsed.warnings) {
      logger.warn(warning);
    }
    if (flags.mode === 'cleanup') {
      const client = KubeClient.load(connectionOf(flags));
      const timeout = timeoutSignal(flags['cleanup-timeout']);
      try {
        await cleanUp({
          client,
          namespace: flags['argocd-namespace'],
          otherNamespaces: flags['cleanup-namespaces'].split(',').filter(Boolean),
          principalNamespace: flags['cleanup-principal-namespace'] || undefined,
          logger,
          signal: AbortSignal.any([signal, timeout]),
        });
      } finally {
        await client.close();
      }
      return;
    }
    await runDaemon({
      flags,
      env,
      logger,
      leaseName,
      signal,
      fleetEvents: (registry, namespace) => {
        const source = `/argocd-agent/controller/${namespace}`;
        return fleetEvents({ flags, source, metrics: 'gitops_controller', registry, logger });
      },
      make: (client, instance, events) => {
        const controller = new Controller({
          client,
          logger,
          delivery: {
            ...deliveryOf(flags),
            rolloutStrategy: jsonOf('rollout-strategy', flags['rollout-strategy'], rolloutStrategySchema),
            clusterLabels: jsonOf('cluster-labels', flags['cluster-labels'], clusterLabelsSchema),
          },
          watchNamespaces: flags['watch-namespaces'],
          configuredNamespaces: flags['configure-argocd'],
          argoCdNamespace: flags['argocd-namespace'],
          instance,
          concurrency: flags.concurrency,
          drainMs: flags['drain-timeout'],
          fleetEvents: events,
        });
        const certificates = () =>
          controller.certificates().map(({ namespace, secret, notAfter }) => {
            return { certificate: `${namespace}/${secret}`, notAfter };
          });
        return {
          run: async (until) => {
            await Promise.all([controller.run(until), events && watchCertificates(events, certificates, until)]);
          },
          missing: () => controller.missing(),
          stats: () => controller.stats,
          conditions: () => controller.conditions(),
          rollouts: () => controller.rollouts(),
          certificates: () => controller.certificates(),
        };
      },
    });
  },
});
