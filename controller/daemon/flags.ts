import { boolFlag, durationFlag, intFlag, listFlag, stringFlag } from '../../lib/ops/index.ts';
import { originalFlags } from './original-flags.ts';

/** Flags for the connection to the hub. */
export const hubFlags = {
  kubeconfig: stringFlag({
    usage:
      'path of a kubeconfig file; default: KUBECONFIG, the in-cluster configuration or ~/.kube/config, in this order',
  }),
  kubecontext: stringFlag({ usage: 'context of the kubeconfig file' }),
};
/** Log level and format. */
const logFlags = {
  'log-level': listFlag({ usage: 'log level: fatal, error, warning, info, debug or trace', default: ['info'] }),
  'log-format': stringFlag({ usage: 'log format: text or json', default: 'text' }),
};
/** Flags of the long-running commands: names and defaults of argocd-pull-integration's manager. */
export const daemonFlags = {
  ...hubFlags,
  ...logFlags,
  'metrics-bind-address': stringFlag({
    usage: 'address of the metrics server, for example :8080; 0 for none',
    default: '0',
  }),
  'health-probe-bind-address': stringFlag({ usage: 'address of the health server', default: ':8081' }),
  'leader-elect': boolFlag({ usage: 'elect a leader: only one of several controllers is active' }),
  'leader-election-namespace': stringFlag({
    usage: "namespace of the leader's Lease; default: the pod's namespace",
    env: 'POD_NAMESPACE',
  }),
  // argocd-pull-integration's are fixed at 15, 10 and 2 s. Candidates of both programs follow their own durations.
  'leader-election-lease-duration': durationFlag({
    usage: 'time without a renewal after which another controller becomes the leader',
    default: 8_000,
  }),
  'leader-election-renew-deadline': durationFlag({
    usage: 'time for which the leader tries to renew its Lease before it gives up; less than the lease duration',
    default: 6_000,
  }),
  'leader-election-retry-period': durationFlag({
    usage: 'interval of attempts to acquire or renew the Lease',
    default: 1_000,
  }),
  concurrency: intFlag({
    usage: 'number of clusters (basic pull model: Applications) that are reconciled at the same time',
    default: 16,
    check: (value) => (value > 0 ? undefined : 'must be greater than 0'),
  }),
  ...originalFlags,
};
