import type { KubeClient } from '../../lib/kube/index.ts';
import { namespace, pairApplicationSets, pairApplications, pairAppProjects } from '../pair/index.ts';
import { teams } from './leaving-scene.ts';

/** What leaves: a copy, a copy that was an Application of the cluster before, or an autonomous cluster's Application. */
export type Kind = 'copy' | 'taken over' | 'autonomous';

/** When the two sides learn of it. */
export const orders = ['connected', 'both restart', 'agent in the middle', 'agent away', 'principal restarts'] as const;
/** One of them. */
export type Order = (typeof orders)[number];

/** Where a way to leave is taken. */
export interface LeavingPlace {
  readonly hub: KubeClient;
  /** The cluster that the Application is deployed on. */
  readonly cluster: KubeClient;
  readonly name: string;
  /** The Application on the hub, a mirror for an autonomous cluster. */
  readonly onHub: { readonly namespace: string; readonly name: string };
}

/** A way in which Applications leave, and the rule for it. */
export interface LeavingWay {
  readonly finalizers: readonly string[];
  readonly leave: (at: LeavingPlace) => Promise<unknown>;
  /** Of which kinds the workload goes. */
  readonly goes: readonly Kind[];
  /** The Application stays on the hub. Default: it goes. */
  readonly staysOnHub?: true;
  /** The Application stays on its cluster, a copy as a copy. Default: it goes, or is given back if the hub's stays. */
  readonly staysOnCluster?: true;
  /** It needs the principal to start with other settings. */
  readonly orders?: readonly Order[];
  /** Of its Applications. Default: Argo CD's. */
  readonly namespaceIn?: (order: Order) => string;
  /** Its Applications come from an ApplicationSet. */
  readonly isSet?: true;
  /** Its Applications have an AppProject of their own, of their name. */
  readonly hasProject?: true;
}

const foreground = 'resources-finalizer.argocd.argoproj.io/foreground';
const background = 'resources-finalizer.argocd.argoproj.io/background';

const edit = (patch: object) => (at: LeavingPlace) => at.hub.mergePatch(pairApplications, at.onHub, patch);
const remove = (at: LeavingPlace) => at.hub.delete(pairApplications, at.onHub);
const finalizersOff = edit({ metadata: { finalizers: null } });
const move = edit({ spec: { destination: { name: 'elsewhere' } } });
const label = edit({ metadata: { labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } } });
const unselect = edit({ metadata: { labels: { tier: 'none' } } });
const release = edit({ metadata: { annotations: { 'argocd-agent.argoproj-labs.io/release': 'true' } } });
const nothing = async () => undefined;
const inTurn =
  (...steps: readonly ((at: LeavingPlace) => Promise<unknown>)[]) =>
  async (at: LeavingPlace) => {
    for (const step of steps) {
      await step(at);
    }
  };
const forbidProject = ({ hub, name }: LeavingPlace) =>
  hub.mergePatch(
    pairAppProjects,
    { namespace, name },
    { spec: { destinations: [{ name: 'elsewhere', namespace: '*' }] } },
  );
const removeSet = ({ hub, name }: LeavingPlace) => hub.delete(pairApplicationSets, { namespace, name });

/** The namespace that the principal does not handle any more after its restart in this order. */
export const teamOf = (order: Order) => teams[order === 'principal restarts' ? 0 : 1];

const all: readonly Kind[] = ['copy', 'taken over'];
const namespaceWay = {
  finalizers: [foreground],
  staysOnHub: true,
  orders: ['principal restarts', 'both restart'],
  namespaceIn: teamOf,
} as const;

/** Of the Applications of a managed cluster. */
export const managedWays: Readonly<Record<string, LeavingWay>> = {
  'deleted, foreground': { finalizers: [foreground], leave: remove, goes: all },
  'deleted, background': { finalizers: [background], leave: remove, goes: all },
  'deleted, no finalizer': { finalizers: [], leave: remove, goes: [] },
  // As argocd-server does it for `argocd app delete --cascade=false`.
  'finalizer off, deleted': { finalizers: [foreground], leave: inTurn(finalizersOff, remove), goes: [] },
  'finalizer off and on, deleted': {
    finalizers: [foreground],
    leave: inTurn(finalizersOff, edit({ metadata: { finalizers: [foreground] } }), remove),
    goes: all,
  },
  moved: { finalizers: [foreground], leave: move, goes: ['copy'], staysOnHub: true },
  'finalizer off, moved': { finalizers: [foreground], leave: inTurn(finalizersOff, move), goes: [], staysOnHub: true },
  'ignore-sync': { finalizers: [foreground], leave: label, goes: ['copy'], staysOnHub: true },
  'finalizer off, ignore-sync': {
    finalizers: [foreground],
    leave: inTurn(finalizersOff, label),
    goes: [],
    staysOnHub: true,
  },
  'not selected': { finalizers: [foreground], leave: unselect, goes: ['copy'], staysOnHub: true },
  'finalizer off, not selected': {
    finalizers: [foreground],
    leave: inTurn(finalizersOff, unselect),
    goes: [],
    staysOnHub: true,
  },
  'namespace not allowed': { ...namespaceWay, leave: nothing, goes: ['copy'] },
  'finalizer off, namespace not allowed': { ...namespaceWay, leave: finalizersOff, goes: [] },
  'AppProject without the cluster': {
    finalizers: [foreground],
    leave: forbidProject,
    goes: [],
    staysOnHub: true,
    staysOnCluster: true,
    hasProject: true,
  },
  'released, deleted': { finalizers: [foreground], leave: inTurn(release, remove), goes: [] },
  'released, moved': { finalizers: [foreground], leave: inTurn(release, move), goes: [], staysOnHub: true },
  'ApplicationSet, preserveResourcesOnDeletion': { finalizers: [], leave: removeSet, goes: [], isSet: true },
};

const here = ({ name }: LeavingPlace) => ({ namespace, name });
const editHere = (patch: object) => (at: LeavingPlace) => at.cluster.mergePatch(pairApplications, here(at), patch);
const removeHere = (at: LeavingPlace) => at.cluster.delete(pairApplications, here(at));

/** Of an autonomous cluster's Applications: the hub asks for nothing, whatever becomes of the mirror. */
export const autonomousWays: Readonly<Record<string, LeavingWay>> = {
  'deleted, foreground': { finalizers: [foreground], leave: removeHere, goes: ['autonomous'] },
  'deleted, background': { finalizers: [background], leave: removeHere, goes: ['autonomous'] },
  'deleted, no finalizer': { finalizers: [], leave: removeHere, goes: [] },
  'finalizer off, deleted': {
    finalizers: [foreground],
    leave: inTurn(editHere({ metadata: { finalizers: null } }), removeHere),
    goes: [],
  },
  'ignore-sync': {
    finalizers: [foreground],
    leave: editHere({ metadata: { labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } } }),
    goes: [],
    staysOnCluster: true,
  },
  'mirror deleted': { finalizers: [foreground], leave: remove, goes: [], staysOnCluster: true, staysOnHub: true },
  'mirror released, deleted': {
    finalizers: [foreground],
    leave: inTurn(release, remove),
    goes: [],
    staysOnCluster: true,
    staysOnHub: true,
  },
  'mirror moved': { finalizers: [foreground], leave: move, goes: [], staysOnCluster: true, staysOnHub: true },
};
