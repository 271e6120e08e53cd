import { Gauge, type Registry } from 'prom-client';
import type { WorkQueueStats } from '../../lib/kube/index.ts';
import { createRegistry } from '../../lib/ops/index.ts';

/** What a daemon shows in its metrics. */
export interface ObservedState {
  /** Work queue statistics, by queue. */
  stats(): Readonly<Record<string, WorkQueueStats>>;
  /** The conditions of its GitOpsClusters; absent without any. */
  conditions?(): Iterable<ObservedCondition>;
  /** The progress of each GitOpsCluster's rollout; absent without any. */
  rollouts?(): Iterable<ObservedRollout>;
  /** The certificates that it issues for the hub; absent without any. */
  certificates?(): Iterable<ObservedCertificate>;
}

/** A condition of a GitOpsCluster, for a metric. */
export interface ObservedCondition {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly status: string;
}

/** The progress of a GitOpsCluster's rollout, for metrics. */
export interface ObservedRollout {
  readonly namespace: string;
  readonly name: string;
  /** Clusters by phase. */
  readonly clusters: ReadonlyMap<string, number>;
  /** Too many clusters have failed, so no further one is updated. */
  readonly isStopped: boolean;
}

/** A certificate of the hub, for a metric. */
export interface ObservedCertificate {
  readonly namespace: string;
  readonly secret: string;
  readonly notAfter: Date;
}

/** The phases of clusters in a rollout: each has a series, also when no cluster is in it. */
const phases = ['Waiting', 'Progressing', 'Soaking', 'Succeeded', 'TimeOut', 'Unreachable'];

/** The controller's metrics; `current` gives the state while this process is the leader. */
export function controllerRegistry(current: () => ObservedState | undefined): Registry {
  const registry = createRegistry();
  const figures = [
    ['gitops_controller_reconciles_done', 'done', 'Successful reconciles'],
    ['gitops_controller_reconciles_failed', 'failed', 'Failed reconciles; each is retried'],
    ['gitops_controller_keys_retrying', 'retrying', 'Keys whose last reconcile failed'],
  ] as const;
  for (const [name, field, help] of figures) {
    new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [registry],
      collect() {
        for (const [queue, now] of Object.entries(current()?.stats() ?? {})) {
          this.set({ queue }, now[field]);
        }
      },
    });
  }
  new Gauge({
    name: 'gitops_controller_condition',
    help: 'Conditions of the GitOpsClusters; always 1',
    labelNames: ['namespace', 'name', 'type', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { namespace, name, type, status } of current()?.conditions?.() ?? []) {
        this.set({ namespace, name, type, status }, 1);
      }
    },
  });
  new Gauge({
    name: 'gitops_controller_rollout_clusters',
    help: 'Clusters of each GitOpsCluster by the phase of their update to the current version',
    labelNames: ['namespace', 'name', 'phase'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { namespace, name, clusters } of current()?.rollouts?.() ?? []) {
        for (const phase of phases) {
          this.set({ namespace, name, phase }, clusters.get(phase) ?? 0);
        }
      }
    },
  });
  new Gauge({
    name: 'gitops_controller_rollout_stopped',
    help: '1 if the rollout of the GitOpsCluster has stopped because too many clusters failed, else 0',
    labelNames: ['namespace', 'name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { namespace, name, isStopped } of current()?.rollouts?.() ?? []) {
        this.set({ namespace, name }, isStopped ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: 'gitops_controller_certificate_expiration_timestamp_seconds',
    help: 'Unix time at which each certificate of the hub expires, in seconds, by its Secret',
    labelNames: ['namespace', 'secret'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { namespace, secret, notAfter } of current()?.certificates?.() ?? []) {
        this.set({ namespace, secret }, notAfter.getTime() / 1_000);
      }
    },
  });
  return registry;
}
