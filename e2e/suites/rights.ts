import { type RunningFleet, releaseNamespace } from '../fleet/index.ts';
import { type Conduct, describeRequest, type Workplace } from '../rights/index.ts';

const addOn = 'argocd-agent-addon';

/** Where each program runs, and as whom. */
export function workplaces(fleet: RunningFleet): Record<string, Workplace[]> {
  const everyMember = (namespace: string, name: string) =>
    [...fleet.members.values()].map(({ cluster }) => ({ cluster, account: { namespace, name } }));
  return {
    controller: [{ cluster: fleet.hub, account: { namespace: releaseNamespace, name: `${addOn}-controller` } }],
    principal: [{ cluster: fleet.hub, account: { namespace: 'argocd', name: 'argocd-agent-principal' } }],
    agent: everyMember('argocd', 'argocd-agent-agent'),
    'clean-up': everyMember(`${addOn}-cleanup`, `${addOn}-cleanup`),
  };
}

const readAgain = 'a write that was refused or whose answer was lost: the object is read before the next attempt';
const nodePorts = 'the Service of the principal is of type NodePort';
const otherHubs = 'hubs that have the kind';
const byKubectl = 'kubectl through the resource proxy: get --watch, replace; Argo CD itself does neither';
const sayAgain = 'an event that happens again is counted in the first one';

/** What the scenario need not use, by program, with the reason why it is given all the same. */
const reserves: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  controller: {
    'ClusterRole argocd-agent-addon-controller: list nodes': nodePorts,
    'ClusterRole argocd-agent-addon-controller: watch nodes': nodePorts,
    ...Object.fromEntries(
      ['list', 'watch'].flatMap((verb) => [
        [`ClusterRole argocd-agent-addon-controller: ${verb} gateways.gateway.networking.k8s.io`, otherHubs],
        [`Role argocd-agent-addon-controller: ${verb} tlsroutes.gateway.networking.k8s.io in argocd`, otherHubs],
        [`Role argocd-agent-addon-controller: ${verb} routes.route.openshift.io in argocd`, otherHubs],
      ]),
    ),
    'ClusterRole argocd-agent-addon-controller: patch events.events.k8s.io': sayAgain,
  },
  principal: {
    'ClusterRole argocd-agent-principal: get applications.argoproj.io': readAgain,
    'Role argocd-agent-principal: get appprojects.argoproj.io in argocd': readAgain,
    'Role argocd-agent-principal: get leases.coordination.k8s.io in argocd': readAgain,
    'ClusterRole argocd-agent-principal: create events.events.k8s.io':
      'an agent in a mode that it may not have, and a mirror that somebody has changed',
    'ClusterRole argocd-agent-principal: patch events.events.k8s.io': sayAgain,
  },
  agent: {
    'ClusterRole argocd-agent-agent: get applications.argoproj.io': readAgain,
    'Role argocd-agent-agent: get appprojects.argoproj.io in argocd': readAgain,
    'Role argocd-agent-agent: get secrets in argocd': readAgain,
    'Role argocd-agent-agent: get configmaps in argocd': readAgain,
    'ClusterRole argocd-agent-live-access: create *.*':
      'actions that make objects, and terminals where the API server asks for this right',
    'ClusterRole argocd-agent-live-access: watch *.*': byKubectl,
    'ClusterRole argocd-agent-live-access: update *.*': byKubectl,
  },
};

/** The namespaces of the Applications that users look at through live access: the agents' wide rights are for these alone. */
export const liveNamespaces = ['ticker'] as const;

/** What is wrong with the rights: what was refused for no good reason, and what is given for none. */
export function unexplained(conduct: readonly Conduct[]): string[] {
  const isLive = (namespace: string) => (liveNamespaces as readonly string[]).includes(namespace);
  return conduct.flatMap(({ program, refused, superfluous, widely }) => [
    ...refused.map((what) => `${program} may not ${what}`),
    ...superfluous.filter((what) => !reserves[program]?.[what]).map((what) => `${program} does not need ${what}`),
    ...widely
      .filter(({ namespace }) => program !== 'agent' || !isLive(namespace))
      .map((request) => `${program} needs its right to everything for ${describeRequest(request)}`),
  ]);
}
