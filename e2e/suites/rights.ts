import { type Fleet, releaseNamespace } from '../fleet/index.ts';
import type { Conduct, Workplace } from '../rights/index.ts';

const addOn = 'argocd-agent-addon';

/** Where each program runs, and as whom. */
export function workplaces(fleet: Fleet): Record<string, Workplace[]> {
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
const sayAgain = 'an event that happens again is counted in the first one';

/** What the scenario need not use, by program, with the reason why it is given all the same. */
const reserves: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  controller: {
    'ClusterRole argocd-agent-addon-controller: list nodes': nodePorts,
    'ClusterRole argocd-agent-addon-controller: watch nodes': nodePorts,
    ...Object.fromEntries(
      [
        'gateways.gateway.networking.k8s.io',
        'tlsroutes.gateway.networking.k8s.io',
        'routes.route.openshift.io',
      ].flatMap((kind) =>
        ['list', 'watch'].map((verb) => [`ClusterRole argocd-agent-addon-controller: ${verb} ${kind}`, otherHubs]),
      ),
    ),
    'ClusterRole argocd-agent-addon-controller: patch events.events.k8s.io': sayAgain,
  },
  principal: {
    'ClusterRole argocd-agent-principal: get applications.argoproj.io': readAgain,
    'Role argocd-agent-principal: get appprojects.argoproj.io in argocd': readAgain,
    'Role argocd-agent-principal: get leases.coordination.k8s.io in argocd': readAgain,
    'Role argocd-agent-principal: create events.events.k8s.io in argocd': 'an agent in a mode that it may not have',
    'Role argocd-agent-principal: patch events.events.k8s.io in argocd': sayAgain,
  },
  agent: {
    'ClusterRole argocd-agent-agent: get applications.argoproj.io': readAgain,
    'Role argocd-agent-agent: get appprojects.argoproj.io in argocd': readAgain,
    'Role argocd-agent-agent: get secrets in argocd': readAgain,
    'Role argocd-agent-agent: get configmaps in argocd': readAgain,
  },
};

/** What may be refused, by program, with the reason why nothing is missing. */
const refusals: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  controller: {
    [`update leases.coordination.k8s.io 7310a56a.open-cluster-management.io in ${releaseNamespace}`]:
      'it gives its lease back when Helm has removed its Role already',
  },
};

/** What is wrong with the rights: what was refused for no good reason, and what is given for none. */
export function unexplained(conduct: readonly Conduct[]): string[] {
  return conduct.flatMap(({ program, refused, superfluous }) => [
    ...refused.filter((what) => !refusals[program]?.[what]).map((what) => `${program} may not ${what}`),
    ...superfluous.filter((what) => !reserves[program]?.[what]).map((what) => `${program} does not need ${what}`),
  ]);
}
