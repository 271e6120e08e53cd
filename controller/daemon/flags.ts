import { boolFlag, durationFlag, intFlag, listFlag, stringFlag } from '../../lib/ops/index.ts';

/** How to reach the hub. */
export const hubFlags = {
  kubeconfig: stringFlag({
    usage: "file that says how to reach the hub's API server; default: KUBECONFIG, else the pod's own account",
  }),
  kubecontext: stringFlag({ usage: 'context of the kubeconfig' }),
};
/** What is logged, and how. */
const logFlags = {
  'log-level': listFlag({ usage: 'log level: fatal, error, warning, info, debug or trace', default: ['info'] }),
  'log-format': stringFlag({ usage: 'log format: text or json', default: 'text' }),
};
/** Flags of everything that runs for as long as its process does: names and defaults of the original's manager. */
export const daemonFlags = {
  ...hubFlags,
  ...logFlags,
  'metrics-bind-address': stringFlag({
    usage: 'address of the metrics server, for instance :8080; 0 for none',
    default: '0',
  }),
  'metrics-secure': boolFlag({ usage: 'accepted for compatibility; metrics are plain HTTP', default: true }),
  'health-probe-bind-address': stringFlag({ usage: 'address of the health server', default: ':8081' }),
  'leader-elect': boolFlag({ usage: 'let only one of several controllers work' }),
  'leader-election-namespace': stringFlag({
    usage: "namespace of the leader's Lease; default: the pod's own",
    env: 'POD_NAMESPACE',
  }),
  // The original's are 15, 10 and 2 s and cannot be set; candidates of either kind go by their own.
  'leader-election-lease-duration': durationFlag({
    usage: 'how long others wait for a silent leader',
    default: 8_000,
  }),
  'leader-election-renew-deadline': durationFlag({
    usage: 'how long the leader tries to renew before it gives up; less than the lease duration',
    default: 6_000,
  }),
  'leader-election-retry-period': durationFlag({ usage: 'time between tries to renew, or to lead', default: 1_000 }),
  concurrency: intFlag({
    usage: 'clusters, or Applications of the basic pull model, worked on at the same time',
    default: 16,
    check: (value) => (value > 0 ? undefined : 'must be greater than 0'),
  }),
  'enable-http2': boolFlag({ usage: 'accepted for compatibility', hidden: true }),
};
