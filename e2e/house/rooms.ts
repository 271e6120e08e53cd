import type { ImportGraph } from './imports.ts';

/**
 * The rooms of a program, from the ground up, each with the rooms that its code may import. A room stands after everything
 * that it imports, so that there are no cycles between rooms. `''` is the program's own folder.
 */
export type Rooms = Readonly<Record<string, readonly string[]>>;

/** The rooms of the controller. */
export const controllerRooms: Rooms = {
  // Leader election, health and metrics servers, queues over caches: what every long-running command needs.
  daemon: [],
  // Where agents reach the principal, from what the hub has.
  endpoint: [],
  // The hub's API server: kinds, names, caches, writes.
  hub: ['endpoint'],
  // What is desired: the GitOpsCluster's specification and what follows from it.
  spec: ['endpoint', 'hub'],
  // The ManifestWorks of a cluster.
  render: ['hub', 'spec'],
  // Which GitOpsCluster has which cluster, and what the clusters reported.
  ownership: ['hub', 'spec'],
  // How clusters follow a new version.
  rollout: ['hub', 'render', 'spec'],
  // Authorities, certificates and keys.
  trust: ['endpoint', 'hub', 'ownership', 'spec'],
  // The reconcile of one cluster: enrolment and detachment.
  cluster: ['hub', 'ownership', 'render', 'rollout', 'spec', 'trust'],
  // The hub's own Argo CD: what live access needs of it.
  argocd: ['hub'],
  // The reconcile of one GitOpsCluster.
  fleet: ['argocd', 'endpoint', 'hub', 'ownership', 'render', 'rollout', 'spec', 'trust'],
  // The controller: queues, and what wakes which.
  '': ['cluster', 'daemon', 'fleet', 'hub', 'ownership', 'render', 'rollout', 'spec', 'trust'],
  // A hub's change from argocd-pull-integration to this project, and back.
  takeover: ['hub'],
  // The basic pull model.
  basic: ['daemon', 'hub'],
  commands: ['', 'cluster', 'daemon', 'endpoint', 'hub', 'render', 'spec', 'takeover', 'trust'],
};

/** The rooms of the library. What is above may be simulated, where neither Kubernetes nor gRPC is below. */
export const libRooms: Rooms = {
  // Time, cancellation, streams, text: what knows nothing of this project.
  base: [],
  // Who an agent is: identities, tokens, passwords.
  auth: ['base'],
  // Keys and certificates.
  pki: ['base'],
  // Which certificates and tokens still count, for as long as they are used.
  credentials: ['auth', 'base', 'pki'],
  // The delivery engine.
  sync: ['base'],
  // The rules for Argo CD's objects.
  argocd: ['auth', 'base', 'sync'],
  // The client of Kubernetes: caches, queues, Leases.
  kube: ['base'],
  // What both ends of live access share.
  live: ['base'],
  // Servers of HTTP with limits.
  http: ['base'],
  // Flags, logs, metrics, health, Events.
  ops: ['base', 'http'],
  tracing: ['base', 'ops'],
  // gRPC and the messages of argocd-agent.
  wire: ['auth', 'base', 'credentials', 'http', 'tracing'],
  // What connects engine, cluster and wire.
  bridge: ['argocd', 'base', 'kube', 'live', 'ops', 'sync', 'tracing', 'wire'],
  // Argo CD's cluster Secrets of agents.
  clusters: ['auth', 'base', 'kube', 'ops'],
  manifests: ['base', 'kube', 'pki'],
  redis: ['base', 'kube', 'ops'],
  spiffe: ['auth', 'base', 'ops', 'pki'],
  // The steps that something on the hub goes until it works on a cluster.
  way: ['argocd', 'base', 'clusters', 'kube'],
};

/** The rooms of the testbed: what is below runs programs, what is above tells stories. */
export const testbedRooms: Rooms = {
  // Programs of others: downloads and builds.
  tools: [],
  // Programs of this project.
  programs: [],
  // Control planes, processes that cannot outlive the tests, waits.
  testbed: ['programs', 'tools'],
  // A container runtime without root.
  node: ['programs', 'testbed', 'tools'],
  git: ['testbed'],
  network: [],
  random: [],
  // Argo CD's own functions, asked line by line.
  oracle: ['random', 'tools'],
  // A root, an issuing authority, and certificates of that.
  'certificate-chain': [],
  // A stand-in for Argo CD's application controller.
  'application-controller': [],
  redis: ['testbed', 'tools'],
  // Charts, manifests and CRDs on a hub.
  hub: ['testbed', 'tools'],
  ocm: ['hub', 'testbed', 'tools'],
  // A hub with agents, each a process on a control plane of its own.
  pair: ['hub', 'network', 'programs', 'testbed', 'tools'],
  // An OCM hub and its clusters, up to the point where an operator types `helm install`.
  fleet: ['git', 'hub', 'node', 'ocm', 'testbed', 'tools'],
  argocd: ['fleet', 'testbed', 'tools'],
  live: ['node', 'pair', 'tools'],
  rights: [],
  image: [],
  provider: ['fleet', 'git', 'hub', 'image', 'ocm', 'testbed'],
  suites: ['argocd', 'fleet', 'network', 'node', 'ocm', 'provider', 'random', 'rights', 'testbed'],
  chaos: ['application-controller', 'live', 'network', 'pair', 'random', 'redis', 'suites', 'testbed'],
  ecosystem: ['argocd', 'fleet', 'git', 'hub', 'node', 'pair', 'testbed', 'tools'],
  // One end of an event stream, scripted: with our client or server, or as the originals.
  peer: [],
  hostile: ['pair', 'peer', 'random'],
  recordings: [],
  interop: ['live', 'node', 'pair', 'peer', 'random', 'recordings', 'redis', 'testbed', 'tools'],
  upgrade: ['chaos', 'fleet', 'hub', 'live', 'node', 'ocm', 'pair', 'random', 'testbed', 'tools'],
  // Charts, brought by every tool to every kind of cluster.
  surroundings: ['argocd', 'fleet', 'git', 'hub', 'live', 'node', 'testbed', 'tools', 'upgrade'],
  monitoring: ['testbed'],
  demo: ['argocd', 'fleet', 'git', 'node', 'ocm', 'programs', 'provider', 'testbed', 'tools'],
  matrix: ['tools'],
  // What tests need beyond what the README asks for.
  needs: ['tools', 'upgrade'],
  tiers: [],
  costs: [],
  memory: [],
  house: [],
};

const isTest = (file: string) => file.endsWith('.test.ts') || /\/testing(\/|\.ts$)/.test(file);

/** The imports inside a program that break the rules of its rooms, in words. */
export function brokenRooms(graph: ImportGraph, program: string, rooms: Rooms): string[] {
  const broken: string[] = [];
  const names = Object.keys(rooms);
  for (const [name, allowed] of Object.entries(rooms)) {
    for (const upper of allowed.filter((one) => names.indexOf(one) >= names.indexOf(name))) {
      broken.push(`room ${name} may import ${upper}, which does not stand before it`);
    }
  }
  const roomOf = (file: string) => file.split('/').slice(1, -1)[0] ?? '';
  for (const [file, imports] of graph) {
    if (!file.startsWith(`${program}/`)) {
      continue;
    }
    const from = roomOf(file);
    for (const target of imports.filter((one) => one.startsWith(`${program}/`))) {
      const to = roomOf(target);
      if (from === to || (isTest(file) && isTest(target))) {
        continue;
      }
      if (to !== '' && target !== `${program}/${to}/index.ts`) {
        broken.push(`${file} imports ${target}: import ${program}/${to}/index.ts, its public face`);
      }
      const isFace = file === `${program}/index.ts`;
      if (!isTest(file) && !isFace && !(rooms[from] ?? []).includes(to)) {
        broken.push(`${file} imports ${target}: room ${from || program} does not import room ${to || program}`);
      }
    }
  }
  return broken;
}
