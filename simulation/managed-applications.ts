import { resourcesFinalizer } from '../e2e/application-controller/rules.ts';
import { type Application, annotations, skipSyncLabel } from '../lib/argocd/index.ts';
import type { ObjectRef } from '../lib/sync/index.ts';
import { refOf } from '../lib/sync/index.ts';
import { differencesOf } from './check.ts';
import type { Collection } from './cluster.ts';
import { attempt, type Scene, type Site, type Topic } from './world.ts';

/** Applications that users have on the hub for managed agents. */
export class ManagedApplications implements Topic {
  readonly #scene: Scene;
  /** The last operation that was asked for on the hub, by Application. */
  readonly #operations = new Map<string, { readonly uid: string; readonly revision: string }>();
  /** What the managed cluster's own programs noted last on a copy, by its uid. */
  readonly #notes = new Map<string, string>();
  #count = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
    for (const { cluster } of scene.sites) {
      cluster.onRestored(() => this.#noteAnew(cluster.of('Application')));
    }
  }

  /** What its storage has of the notes is what there is. */
  #noteAnew(applications: Collection<Application>): void {
    for (const { metadata } of applications.list()) {
      const note = metadata.annotations?.[annotations.notified];
      if (note === undefined) {
        this.#notes.delete(metadata.uid ?? '');
      } else {
        this.#notes.set(metadata.uid ?? '', note);
      }
    }
  }

  concerns(site: Site): boolean {
    return site.mode === 'managed';
  }

  beyondOneSite(): string | undefined {
    const { dice, layout, sites } = this.#scene;
    if (layout.otherDestinations.length === 0 || !dice.chance(0.15)) {
      return undefined;
    }
    const any = dice.pick(this.#hub.list());
    if (any === undefined) {
      return 'nothing';
    }
    const ref = refOf(any);
    const move = () => attempt(() => this.#move(ref));
    if (dice.chance(0.5)) {
      return `user on hub: ${move()}`;
    }
    // Moved, and perhaps moved back, while nobody receives it.
    for (const { stream } of sites) {
      stream?.break();
    }
    return `links break, user on hub: ${move()}, ${move()}, ${move()}`;
  }

  problems(site: Site): string[] {
    const { hub, layout, principalUid } = this.#scene;
    if (site.isGo) {
      return this.#keptByGo(site);
    }
    return [
      ...differencesOf(
        hub.of('Application'),
        site,
        layout,
        principalUid,
        (name) => this.#isHindered(site, name),
        (app) => this.#isLeaving(app),
      ),
      ...this.#operationProblems(site),
      ...this.#noteProblems(site),
    ];
  }

  /** What it refuses it acknowledges, and so much may be out of step. But what the hub has deleted does not stay. */
  #keptByGo({ name: agent, cluster }: Site): string[] {
    const { layout } = this.#scene;
    return this.#hub.list().flatMap((app) => {
      const { name, deletionTimestamp } = app.metadata;
      const copy = cluster.of('Application').get(layout.toLocal(refOf(app)));
      const stays = copy !== undefined && copy.metadata.deletionTimestamp === undefined;
      return deletionTimestamp !== undefined && layout.agentOf(app) === agent && stays
        ? [`${name}: is being deleted on the hub, and stays on the cluster`]
        : [];
    });
  }

  #isHindered({ cluster }: Site, name: string): boolean {
    return this.#scene.lasting.some((one) => one.cluster === cluster && one.name === name);
  }

  /** Whether a cluster that does not let it go has a copy, which is being deleted. */
  #isLeaving({ metadata }: Application): boolean {
    return this.#scene.sites.some(({ cluster }) =>
      cluster
        .of('Application')
        .list()
        .some(
          ({ metadata: { name, annotations: marks, deletionTimestamp } }) =>
            marks?.[annotations.sourceUid] === metadata.uid &&
            deletionTimestamp !== undefined &&
            this.#scene.lasting.some((one) => one.cluster === cluster && one.name === name),
        ),
    );
  }

  get #hub(): Collection<Application> {
    return this.#scene.hub.of('Application');
  }

  onHub({ name: agent }: Site): string {
    const hub = this.#hub;
    const ref = this.#pick(this.#scene.layout.hubNamespaces(agent));
    const { namespace, name } = ref;
    const app = hub.get(ref);
    if (app === undefined) {
      hub.create(this.#newApplication(ref, agent));
      return `create ${namespace}/${name}`;
    }
    const unkind = this.#unkind(ref, app);
    if (unkind !== undefined) {
      return unkind;
    }
    const choice = this.#scene.dice.integer(0, 14);
    switch (choice) {
      case 0:
        hub.delete(ref, { propagation: 'Foreground' });
        return `delete in the foreground ${namespace}/${name}`;
      case 1:
        hub.delete(ref, { propagation: 'Background' });
        return `delete ${namespace}/${name}`;
      case 2:
        if (app.metadata.deletionTimestamp === undefined && (app.metadata.finalizers ?? []).length === 0) {
          hub.delete(ref, { propagation: 'Background' });
          hub.create(this.#newApplication(ref, agent));
        }
        return `re-create ${namespace}/${name}`;
      case 3:
        hub.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
        return `refresh ${namespace}/${name}`;
      case 4:
      case 5:
        return this.#sync(ref, app.metadata.uid);
      case 6:
        if (app.operation !== undefined && app.status?.operationState?.phase === 'Running') {
          hub.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
        }
        return `terminate ${namespace}/${name}`;
      case 7:
        hub.patch(ref, {
          metadata: { labels: { team: `t${++this.#count}` }, annotations: { note: `n${this.#count}` } },
        });
        return `label ${namespace}/${name}`;
      case 8:
        // A user who does not want to wait for an agent that is away.
        if (app.metadata.deletionTimestamp !== undefined) {
          hub.patch(ref, { metadata: { annotations: { [annotations.release]: 'true' } } });
        }
        return `release ${namespace}/${name}`;
      case 9: {
        const isOut = app.metadata.labels?.[skipSyncLabel] === 'true';
        hub.patch(ref, { metadata: { labels: { [skipSyncLabel]: isOut ? null : 'true' } } });
        this.#operations.delete(`${namespace}/${name}`);
        return `${isOut ? 'put into' : 'take out of'} synchronisation ${namespace}/${name}`;
      }
      case 10:
        hub.patch(ref, { metadata: { annotations: { [annotations.hydrate]: 'normal' } } });
        return `hydrate ${namespace}/${name}`;
      default:
        hub.patch(ref, { spec: { source: { path: `p${++this.#count % 3}` } } });
        return `edit ${namespace}/${name}`;
    }
  }

  /** What not every history's users do; undefined: nothing of that now. */
  #unkind(ref: ObjectRef, app: Application): string | undefined {
    const { unkind, values } = this.#scene;
    const id = `${ref.namespace}/${ref.name}`;
    if (values.isOn && unkind.dice.chance(0.3)) {
      this.#hub.edit(ref, (now) => values.edit(now));
      return `edit values of ${id}`;
    }
    if (unkind.strikes('nonCascading', 0.1)) {
      // As `argocd app delete --cascade=false` does it.
      this.#hub.patch(ref, { metadata: { finalizers: null } });
      if (app.metadata.deletionTimestamp === undefined) {
        this.#hub.delete(ref, { propagation: 'Background' });
      }
      return `delete and leave the workload of ${id}`;
    }
    return undefined;
  }

  onSite(site: Site): string {
    const cluster = site.cluster.of('Application');
    if (site.isGo) {
      return 'nothing';
    }
    const ref = this.#pick(this.#scene.layout.localNamespaces);
    const { name } = ref;
    const app = cluster.get(ref);
    if (app === undefined) {
      if (this.#scene.dice.chance(0.7)) {
        return 'nothing';
      }
      cluster.create({ ...this.#newApplication(ref, ''), spec: { source: { path: 'local' } } });
      return `create unmanaged ${name}`;
    }
    switch (this.#scene.dice.integer(0, 5)) {
      case 0:
        cluster.delete(ref, { propagation: 'Background' });
        return `delete ${name}`;
      case 1:
        cluster.patch(ref, {
          metadata: { annotations: { [annotations.sourceUid]: null, [annotations.namespaceRemapped]: null } },
        });
        return `strip ${name}`;
      case 2:
        cluster.patch(ref, { metadata: { annotations: { [annotations.notified]: `n${++this.#count}` } } });
        this.#notes.set(app.metadata.uid ?? '', `n${this.#count}`);
        return `note ${name}`;
      default:
        cluster.patch(ref, { spec: { source: { path: `local${++this.#count % 3}` } } });
        return `edit ${name}`;
    }
  }

  /** Somebody turns an Application to another cluster, or to none that has an agent. */
  #move(ref: ObjectRef): string {
    const { dice, sites, layout, clusterSecrets } = this.#scene;
    const agents = sites.map(({ name }) => name);
    const to = dice.pick([...agents, ...agents, ...layout.otherDestinations]) ?? '';
    const server = agents.includes(to) ? clusterSecrets.urlFor(ref.name, to) : undefined;
    const destination = server === undefined ? { name: to, server: null } : { name: null, server };
    this.#hub.patch(ref, { spec: { destination } });
    // Whether it was done where it was before is open.
    this.#operations.delete(`${ref.namespace}/${ref.name}`);
    return `move ${ref.namespace}/${ref.name} to '${to}'`;
  }

  #pick(namespaces: readonly string[]): ObjectRef {
    const namespace = namespaces.length === 1 ? namespaces[0] : this.#scene.dice.pick(namespaces);
    return { namespace: namespace ?? '', name: this.#scene.dice.pick(this.#scene.layout.names) ?? '' };
  }

  /** Some are impatient, and ask for another one while the first may run; what is asked for last has to be done. */
  #sync(ref: ObjectRef, uid = ''): string {
    const { time } = this.#scene;
    const revision = `op-${++this.#count}`;
    this.#hub.patch(ref, { metadata: { uid }, operation: { sync: { revision } } });
    this.#operations.set(`${ref.namespace}/${ref.name}`, { uid, revision });
    if (this.#count % 3 === 0) {
      time.after(100, () => this.#scene.trace(`user on hub: ${attempt(() => this.#sync(ref, uid))}`));
    }
    return `sync ${ref.namespace}/${ref.name} ${revision}`;
  }

  #newApplication(ref: ObjectRef, agent: string): Application {
    const finalizers = this.#scene.dice.chance(0.5) ? [resourcesFinalizer] : [];
    const server = this.#scene.clusterSecrets.urlFor(ref.name, agent);
    return {
      metadata: { ...ref, ...(finalizers.length > 0 ? { finalizers } : {}), labels: { team: 'a' } },
      spec: {
        project: 'default',
        source: { path: 'p0' },
        destination:
          this.#scene.layout.otherDestinations.length === 0
            ? { server: 'https://hub', namespace: ref.name }
            : { ...(server === undefined ? { name: agent } : { server }), namespace: ref.name },
      },
    };
  }

  #noteProblems({ cluster }: Site): string[] {
    return cluster
      .of('Application')
      .list()
      .filter(({ metadata }) => metadata.annotations?.[annotations.notified] !== this.#notes.get(metadata.uid ?? ''))
      .map(({ metadata }) => `${metadata.name}: what the managed cluster noted is lost`);
  }

  /**
   * The last operation of an Application must have been started, and once only, whatever restarts meanwhile. On a
   * cluster where users delete copies an operation may be refused, and shows so by being gone.
   */
  #operationProblems(site: Site): string[] {
    const problems: string[] = [];
    for (const [id, { uid, revision }] of this.#operations) {
      const [namespace = '', name = ''] = id.split('/');
      const app = this.#hub.get({ namespace, name });
      const isSure = !site.meddled && !this.#isHindered(site, name);
      if (app?.metadata.uid === uid && this.#scene.layout.agentOf(app) === site.name && isSure) {
        const started = site.argoCD.started.get(revision) ?? 0;
        if (started === 0 || started > 1) {
          problems.push(`${id}: ${revision} was started ${started} times`);
        }
      }
    }
    return problems;
  }
}
