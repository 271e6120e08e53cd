import { type LastingAnswer, Refused, type SimulatedCluster, type WriteRequest } from './cluster.ts';
import type { Scene, Site } from './world.ts';

/** What an API server answers to a write that it, or a policy in front of it, refuses. */
const refusals = [
  // An admission webhook that names no code; a conversion that fails.
  [400, 'BadRequest'],
  // Rights, a webhook, a quota, a namespace that terminates.
  [403, 'Forbidden'],
  [405, 'MethodNotAllowed'],
  [413, 'RequestEntityTooLarge'],
  // A ValidatingAdmissionPolicy; a schema.
  [422, 'Invalid'],
] as const;

/** What an API server answers that cannot. */
const failures = [
  // Priority and fairness.
  [429, 'TooManyRequests'],
  // A webhook that is away, an object that etcd does not take, a database that is full.
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
] as const;

type Answer = readonly [number, string];
type Action = WriteRequest['action'];

/** About how long an API server refuses. */
const someMs = 2_000;
const most = 3;

/** What befalls the API servers of a world, beside that they do not answer. */
export class UnkindServers {
  readonly #scene: Scene;
  readonly #lasting: LastingAnswer[] = [];
  /** Ends what is to pass. */
  readonly #passing = new Set<() => void>();
  #isCalm = false;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** Answers that stay as they are when all is quiet. */
  get lasting(): readonly LastingAnswer[] {
    return this.#lasting;
  }

  /** Something befalls the API server of the hub or the site; undefined: nothing does, this time. */
  befalls(site: Site): string | undefined {
    const { unkind, hub } = this.#scene;
    const cluster = unkind.dice.chance(0.5) ? hub : site.cluster;
    if (unkind.strikes('refusals', 0.08)) {
      return this.#answers(cluster, pick(this.#scene, refusals));
    }
    if (unkind.strikes('failures', 0.08)) {
      return this.#answers(cluster, pick(this.#scene, failures));
    }
    if (unkind.strikes('quota', 0.06)) {
      return this.#fills(cluster);
    }
    if (unkind.strikes('lastingRefusals', 0.1) && this.#lasting.length === 0) {
      return this.#lasts(site.cluster, pick(this.#scene, refusals));
    }
    if (unkind.strikes('lastingFailures', 0.1) && this.#lasting.length === 0) {
      return this.#lasts(site.cluster, pick(this.#scene, failures));
    }
    return unkind.strikes('restores', 0.1) && !site.isGo ? this.#restores(site) : undefined;
  }

  /** Writes of some kind, all or of one name, for a while. */
  #answers(cluster: SimulatedCluster, answer: Answer): string {
    const { unkind, layout } = this.#scene;
    const { dice } = unkind;
    const actions = dice.pick<readonly Action[]>([['create'], ['update'], ['delete'], ['create', 'update', 'delete']]);
    const name = dice.chance(0.5) ? undefined : dice.pick(layout.names);
    this.#for(dice.delay(someMs), cluster, answer, { actions: actions ?? [], name });
    return `${cluster.name}: API server answers ${actions} of ${name ?? 'all'} with ${answer.join(' ')}`;
  }

  /** Nothing new has room. */
  #fills(cluster: SimulatedCluster): string {
    this.#for(this.#scene.unkind.dice.delay(someMs), cluster, [403, 'Forbidden'], { actions: ['create'] });
    return `${cluster.name}: quota is used up`;
  }

  #for(
    ms: number,
    cluster: SimulatedCluster,
    answer: Answer,
    what: { readonly actions: readonly Action[]; readonly name?: string | undefined },
  ): void {
    if (this.#passing.size >= most || this.#losesRefused(cluster)) {
      return;
    }
    const refusal = ({ action, kind, ref }: WriteRequest) =>
      kind !== 'Lease' && what.actions.includes(action) && (what.name ?? ref.name) === ref.name
        ? new Refused(...answer)
        : undefined;
    cluster.refusals.add(refusal);
    const end = () => {
      cluster.refusals.delete(refusal);
      this.#passing.delete(end);
    };
    this.#passing.add(end);
    this.#scene.time.after(ms, end);
  }

  #lasts(cluster: SimulatedCluster, answer: Answer): string {
    const name = pick(this.#scene, this.#scene.layout.names);
    if (this.#losesRefused(cluster)) {
      return 'nothing';
    }
    this.#lasting.push({ cluster, name, answer });
    cluster.refusals.add(({ action, kind, ref }) =>
      kind === 'Application' && action !== 'delete' && ref.name === name ? new Refused(...answer) : undefined,
    );
    return `${cluster.name}: API server answers writes of ${name} with ${answer.join(' ')} for good`;
  }

  /** A managed agent of argocd-agent acknowledges what its API server refuses: nobody could expect anything of it then. */
  #losesRefused(cluster: SimulatedCluster): boolean {
    return this.#scene.sites.some((site) => site.cluster === cluster && site.isGo && site.mode === 'managed');
  }

  /**
   * Its storage is as it was some time ago. Not with an agent of argocd-agent: it takes a version that it has written for the echo
   * of its own write, and so loses what somebody else writes at the same version after a restore.
   */
  #restores(site: Site): string {
    const { unkind, time } = this.#scene;
    const snapshot = site.cluster.snapshot();
    const { restores } = site.cluster;
    const afterMs = unkind.dice.delay(someMs);
    // Programs may have answers of what no watch shows them any more.
    if (unkind.dice.chance(0.5)) {
      time.after(afterMs * unkind.dice.roll(), () => {
        if (!this.#isCalm && site.cluster.restores === restores) {
          site.cluster.silence();
        }
      });
    }
    time.after(afterMs, () => {
      // What was written after another restore has the same versions: nobody could tell one from the other.
      if (this.#isCalm || site.cluster.restores !== restores) {
        return;
      }
      this.#scene.trace(`${site.name}: etcd is restored to version ${snapshot.version}`);
      site.meddled = true;
      this.#scene.restarted = true;
      site.cluster.restore(snapshot);
    });
    return `${site.name}: etcd is backed up at version ${snapshot.version}`;
  }

  /** Nothing befalls them any more but what lasts. */
  calm(): void {
    this.#isCalm = true;
    for (const { cluster } of this.#scene.sites) {
      if (cluster.isSilent) {
        cluster.restore(cluster.snapshot());
      }
    }
    for (const end of [...this.#passing]) {
      end();
    }
  }
}

function pick<T>({ unkind }: Scene, items: readonly T[]): T {
  return unkind.dice.pick(items) as T;
}
