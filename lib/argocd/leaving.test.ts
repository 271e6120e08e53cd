import { describe, expect, test } from 'vitest';
import { StageAgent, StagePrincipal, join as stageJoin } from './autonomous/testing/stage.ts';
import { type Application, annotations, isSkipped, skipSyncLabel } from './index.ts';
import { hubApplication, Lab, LabCluster } from './testing/lab.ts';

/*
 * What becomes of a copy and of its workload when its source leaves: each way to leave, in each order in which the two sides can
 * learn of it, for each kind of copy.
 */

const foreground = 'resources-finalizer.argocd.argoproj.io/foreground';
const background = 'resources-finalizer.argocd.argoproj.io/background';
const ref = { namespace: 'team', name: 'shop' };

/** What an Application of the cluster was before the hub's one took its place. */
const own = {
  metadata: {
    ...ref,
    labels: { mine: 'yes' },
    annotations: { note: 'mine' },
    finalizers: ['resources-finalizer.argocd.argoproj.io'],
  },
  spec: { project: 'default', source: { path: 'own' }, destination: { name: 'in-cluster' } },
} as const;

type Hub = Lab['hub']['objects'];
const patch = (metadata: object) => (hub: Hub) => void hub.patch(ref, { metadata });
const remove = (hub: Hub) => hub.delete(ref, { propagation: 'Background' });
const moveAway = (hub: Hub) => void hub.patch(ref, { spec: { destination: { name: 'other' } } });
const finalizersOff = patch({ finalizers: null });
const inTurn =
  (...steps: readonly ((hub: Hub) => void)[]) =>
  (hub: Hub) => {
    for (const step of steps) {
      step(hub);
    }
  };

interface Way {
  /** The finalizer of the hub's object at first. */
  readonly finalizer: string | undefined;
  readonly leave: (hub: Hub) => void;
  /** What Argo CD removes: by this finalizer, or nothing. */
  readonly removes: 'foreground' | 'background' | 'nothing';
  /** The hub's object waits for the agent, and goes then. */
  readonly waits?: true;
  /** The hub's object goes at once. */
  readonly isDeletion?: true;
  /** The same when the agent never knew of the finalizer: it does not ask for more than the copy it had. */
  readonly removesUnknown?: 'nothing';
}

const ways: Readonly<Record<string, Way>> = {
  'deleted, foreground': { finalizer: foreground, leave: remove, removes: 'foreground', waits: true },
  'deleted, background': { finalizer: background, leave: remove, removes: 'background', waits: true },
  'deleted, no finalizer': { finalizer: undefined, leave: remove, removes: 'nothing', isDeletion: true },
  'finalizer off, deleted': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, remove),
    removes: 'nothing',
    isDeletion: true,
  },
  'finalizer on, deleted': {
    finalizer: undefined,
    leave: inTurn(patch({ finalizers: [foreground] }), remove),
    removes: 'foreground',
    waits: true,
  },
  'finalizer changed, deleted': {
    finalizer: foreground,
    leave: inTurn(patch({ finalizers: [background] }), remove),
    removes: 'background',
    waits: true,
  },
  'moved, finalizer': { finalizer: foreground, leave: moveAway, removes: 'foreground' },
  'moved, no finalizer': { finalizer: undefined, leave: moveAway, removes: 'nothing' },
  'finalizer off, moved': { finalizer: foreground, leave: inTurn(finalizersOff, moveAway), removes: 'nothing' },
  'finalizer changed, moved': {
    finalizer: foreground,
    leave: inTurn(patch({ finalizers: [background] }), moveAway),
    removes: 'background',
  },
  'labelled, finalizer': {
    finalizer: foreground,
    leave: patch({ labels: { [skipSyncLabel]: 'true' } }),
    removes: 'foreground',
  },
  'finalizer off, labelled': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, patch({ labels: { [skipSyncLabel]: 'true' } })),
    removes: 'nothing',
  },
  'not selected, finalizer': { finalizer: foreground, leave: patch({ labels: { tier: null } }), removes: 'foreground' },
  'finalizer off, not selected': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, patch({ labels: { tier: null } })),
    removes: 'nothing',
  },
  'namespace not allowed, finalizer': {
    finalizer: foreground,
    leave: patch({ annotations: { forbidden: 'yes' } }),
    removes: 'foreground',
  },
  'finalizer off, namespace not allowed': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, patch({ annotations: { forbidden: 'yes' } })),
    removes: 'nothing',
  },
  released: {
    finalizer: foreground,
    leave: inTurn(patch({ annotations: { [annotations.release]: 'true' } }), remove),
    removes: 'nothing',
    isDeletion: true,
  },
  'released, moved': {
    finalizer: foreground,
    leave: inTurn(patch({ annotations: { [annotations.release]: 'true' } }), moveAway),
    removes: 'nothing',
  },
  'released, labelled': {
    finalizer: foreground,
    leave: patch({ annotations: { [annotations.release]: 'true' }, labels: { [skipSyncLabel]: 'true' } }),
    removes: 'nothing',
  },
  // As Argo CD's ApplicationSet controller does it.
  'ApplicationSet with preserveResourcesOnDeletion': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, remove),
    removes: 'nothing',
    isDeletion: true,
  },
  'deleted and made again': {
    finalizer: foreground,
    leave: inTurn(finalizersOff, remove, moveAwayAnew),
    removes: 'nothing',
    isDeletion: true,
  },
};

/** Somebody makes another Application of that name, for another cluster. */
function moveAwayAnew(hub: Hub): void {
  hub.create(hubApplication({ ...ref, finalizers: [foreground] }, { spec: { destination: { name: 'other' } } }));
}

const orders = [
  'connected',
  'connected, and the hub takes no writes at first',
  'agent away',
  'principal restarts',
  'both restart',
  'agent restarts in the middle',
] as const;
type Order = (typeof orders)[number];
const isConnected = (order: Order) => order.startsWith('connected');

/** A hub with its principal, and a cluster with its agent, which can be started anew. */
class Scene {
  readonly lab = new Lab();
  readonly cluster = new LabCluster('agent', this.lab.time);
  #principal = this.#newPrincipal();
  #agent = this.#newAgent();
  #part = this.lab.join(this.#principal, this.#agent, 'a');
  /** What Argo CD on the cluster removed, and how. */
  readonly removed: string[] = [];

  constructor() {
    // The caches leave out what the selectors leave out.
    this.lab.hub.isHidden = (one) => isSkipped(one) || one.metadata.labels?.tier !== 'one';
    this.cluster.objects.watch(({ now }) => this.#argoCD(now));
  }

  async order(order: Order, leave: () => void): Promise<void> {
    if (order === 'agent restarts in the middle') {
      this.#restartAtFirstWrite();
    }
    if (order === 'connected, and the hub takes no writes at first') {
      this.#refuseWrites(10_000);
    }
    if (isConnected(order) || order === 'agent restarts in the middle') {
      leave();
    } else {
      this.#part();
      if (order !== 'agent away') {
        this.#principal.stop.abort();
      }
      if (order === 'both restart') {
        this.#agent.stop.abort();
      }
      leave();
      await this.lab.run(30_000);
      if (order !== 'agent away') {
        this.#principal = this.#newPrincipal();
      }
      if (order === 'both restart') {
        this.#agent = this.#newAgent();
      }
      this.#part = this.lab.join(this.#principal, this.#agent, 'a');
    }
    await this.lab.run(120_000);
  }

  /** What the agent is told comes before what the principal writes. */
  #refuseWrites(ms: number): void {
    const { hub, time } = this.lab;
    const until = time.now() + ms;
    hub.intercept = (call) => {
      if (call !== 'read' && time.now() < until) {
        throw new Error('the API server is overloaded');
      }
    };
  }

  /** The agent ends after its first write about what leaves, and another one starts. */
  #restartAtFirstWrite(): void {
    const { lab, cluster } = this;
    let isOver = false;
    cluster.objects.watch(() => {
      if (!isOver) {
        isOver = true;
        this.#part();
        this.#agent.stop.abort();
        lab.time.after(1_000, () => {
          this.#agent = this.#newAgent();
          this.#part = lab.join(this.#principal, this.#agent, 'a');
        });
      }
    });
  }

  /** Argo CD finds an Application that is being deleted. */
  #argoCD(now: Application | undefined): void {
    const { deletionTimestamp, finalizers = [] } = now?.metadata ?? {};
    const why = finalizers.find((one) => one.startsWith('resources-finalizer'));
    if (deletionTimestamp !== undefined && why !== undefined && this.removed.length === 0) {
      this.removed.push(why.slice(why.lastIndexOf('/') + 1));
      this.lab.time.after(100, () => {
        if (this.cluster.objects.get(ref) !== undefined) {
          this.cluster.objects.patch(ref, { metadata: { finalizers: null } });
        }
      });
    }
  }

  #newPrincipal() {
    return this.lab.principal({
      agentOf: ({ metadata, spec }) =>
        isSkipped({ metadata }) || metadata.labels?.tier !== 'one' || metadata.annotations?.forbidden !== undefined
          ? undefined
          : spec.destination?.name,
      namespaceOf: (_, local) => local,
    });
  }

  #newAgent() {
    const mapping = () => ({ toLocal: (at: string) => at, toHub: (at: string) => at });
    return this.lab.agent({ mapping, isAllowed: () => true }, this.cluster);
  }
}

async function leaves(way: Way, order: Order, { isTakenOver }: { readonly isTakenOver: boolean }) {
  const scene = new Scene();
  const hub = scene.lab.hub.objects;
  if (isTakenOver) {
    scene.cluster.objects.create(structuredClone(own) as unknown as Application);
  }
  const finalizers = way.finalizer === undefined ? [] : [way.finalizer];
  hub.create(hubApplication({ ...ref, labels: { tier: 'one' }, finalizers }));
  await scene.lab.run(5_000);
  expect(scene.cluster.objects.get(ref)?.metadata.annotations, 'it is a copy').toHaveProperty([annotations.sourceUid]);
  await scene.order(order, () => way.leave(hub));
  const local = scene.cluster.objects.get(ref);
  return {
    removed: scene.removed[0] ?? 'nothing',
    local: local && { metadata: withoutIds(local), spec: local.spec },
    isOnHub: hub.get(ref)?.metadata.deletionTimestamp !== undefined,
  };
}

function withoutIds({ metadata }: Application): object {
  const { namespace, name, labels, annotations: all, finalizers } = metadata;
  return { namespace, name, labels, annotations: all, finalizers };
}

describe.each(orders)('%s', (order) => {
  test.each(Object.entries(ways))('a copy: %s', async (_, way) => {
    expect(await leaves(way, order, { isTakenOver: false })).toEqual({
      removed: way.removes,
      local: undefined,
      isOnHub: false,
    });
  });

  test.each(Object.entries(ways))('a copy that was here before: %s', async (_, way) => {
    const goes = way.isDeletion === true || way.waits === true;
    expect(await leaves(way, order, { isTakenOver: true })).toEqual({
      removed: goes ? way.removes : 'nothing',
      local: goes ? undefined : own,
      isOnHub: false,
    });
  });

  test.each([
    ['deleted, finalizer', ['resources-finalizer.argocd.argoproj.io'], {}],
    ['deleted, no finalizer', [], {}],
    ['labelled, finalizer', ['resources-finalizer.argocd.argoproj.io'], { labels: { [skipSyncLabel]: 'true' } }],
  ])('a mirror goes, and the hub asks for nothing: %s', async (_, finalizers, change) => {
    const lab = new Lab();
    const cluster = new LabCluster('agent', lab.time);
    cluster.isHidden = isSkipped;
    const local = { namespace: 'argocd', name: 'shop' };
    let principal = new StagePrincipal(lab);
    let agent = new StageAgent(lab, cluster);
    let part = stageJoin(lab, principal, agent);
    cluster.objects.create(hubApplication({ ...local, finalizers: [...finalizers] }));
    await lab.run(5_000);
    expect(principal.mirror()).toBeDefined();
    if (!isConnected(order)) {
      part();
    }
    if (order === 'principal restarts' || order === 'both restart') {
      principal.stop.abort();
    }
    if (!isConnected(order) && order !== 'principal restarts') {
      agent.stop.abort();
    }
    if (Object.keys(change).length > 0) {
      cluster.objects.patch(local, { metadata: change });
    } else {
      cluster.objects.delete(local, { propagation: 'Background' });
      if (finalizers.length > 0) {
        cluster.objects.patch(local, { metadata: { finalizers: null } });
      }
    }
    const writes = cluster.writes;
    await lab.run(5_000);
    if (order === 'principal restarts' || order === 'both restart') {
      principal = new StagePrincipal(lab);
    }
    if (!isConnected(order) && order !== 'principal restarts') {
      agent = new StageAgent(lab, cluster);
    }
    if (!isConnected(order)) {
      part = stageJoin(lab, principal, agent);
    }
    await lab.run(120_000);
    expect(principal.mirror()).toBeUndefined();
    expect(cluster.writes, 'nothing is written on the cluster').toBe(writes);
    part();
  });
});
