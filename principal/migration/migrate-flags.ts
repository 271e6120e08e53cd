import { boolFlag, durationFlag, listFlag, positive, stringFlag } from '../../lib/ops/index.ts';
import { principalFlags } from '../flags.ts';

/** The flags of `argocd-agent migrate`. */
export const migrateFlags = {
  cluster: stringFlag({ usage: "the cluster that the hub's Argo CD reaches directly: its name or URL there" }),
  agent: stringFlag({ usage: "the agent's name; default: the name in the client certificate on the cluster" }),
  application: listFlag({ usage: 'only these Applications, as NAMESPACE/NAME; default: all of the cluster' }),
  'dry-run': boolFlag({ usage: 'check and say what would be done, and change nothing' }),
  undo: boolFlag({ usage: "bring the Applications back to the hub's application controller" }),
  timeout: durationFlag({
    usage: 'how long each wait for Argo CD or the agent may take',
    default: 300_000,
    check: positive,
  }),
  namespace: { ...principalFlags.namespace, default: 'argocd', usage: "Argo CD's namespace on the hub" },
  'agent-namespace': stringFlag({ usage: "Argo CD's namespace on the cluster", default: 'argocd' }),
  kubeconfig: principalFlags.kubeconfig,
  kubecontext: principalFlags.kubecontext,
  'cluster-kubeconfig': stringFlag({ usage: 'kubeconfig of the cluster; default: that of the hub' }),
  'cluster-kubecontext': stringFlag({
    usage: "context of the cluster in the kubeconfig; default: the credentials in the hub's cluster Secret",
  }),
  'destination-based-mapping': {
    ...principalFlags['destination-based-mapping'],
    usage: "Applications keep their namespace, as the principal's ConfigMap or this flag says",
  },
};
