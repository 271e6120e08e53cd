import { boolFlag, durationFlag, listFlag, oneOf, positive, stringFlag } from '../../lib/ops/index.ts';
import { principalFlags } from '../flags.ts';
import { clusterLabelsProblem } from './cluster-labels.ts';
import { hubCommandFlags } from './hub-flags.ts';

/** The flags of `argocd-agent enroll`. */
export const enrollFlags = {
  ...hubCommandFlags,
  mode: stringFlag({
    usage: 'managed: the hub owns the Applications; autonomous: the cluster owns them, and the hub mirrors them',
    default: 'managed',
    check: oneOf('managed', 'autonomous'),
  }),
  'agent-namespace': stringFlag({ usage: "Argo CD's namespace on the agent's cluster", default: 'argocd' }),
  'principal-address': stringFlag({
    usage:
      "host or host:port at which the agent reaches the principal; default: that of its Service's load balancer; the port is 443 unless given",
  }),
  'resource-proxy-address': principalFlags['resource-proxy-address'],
  'destination-based-mapping': {
    ...principalFlags['destination-based-mapping'],
    usage: "Applications keep their namespace, as the principal's ConfigMap or this flag says",
  },
  certificate: stringFlag({
    usage:
      'token: the agent makes its key itself and requests the certificate with a token that can be used once; generate: key and certificate are in the manifest',
    default: 'token',
    check: oneOf('token', 'generate'),
  }),
  'token-ttl': durationFlag({ usage: 'how long the token can be used', default: 3_600_000, check: positive }),
  image: stringFlag({ usage: "the agent's image; default: the principal's, and without one this version's" }),
  'live-access': stringFlag({
    usage: "rights for live access of the hub's users on the cluster: None, Full or the name of a ClusterRole",
    default: 'None',
  }),
  label: listFlag({
    usage:
      "label of the cluster, key=value, by which the cluster generator of the hub's ApplicationSets selects it; may be repeated",
    check: clusterLabelsProblem,
  }),
  again: boolFlag({ usage: 'enroll an agent that is enrolled already: new certificate, same cluster' }),
};
