import { isEqual, type LabelCompletion } from '../../../base/index.ts';
import type { InboxOutcome, ObjectRef, Runtime, StoreChange, View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { isSkipped } from '../../routing.ts';
import { CopyKeeper } from '../../writing/copy-keeper.ts';
import { mirrorNames } from '../../writing/kind-names.ts';
import type { Plan } from '../../writing/plan.ts';
import type { PlanWriter } from '../../writing/plan-writer.ts';
import { fieldsOfMirror, isMarked, type MirrorFields, type MirrorPlace, mirroredUid } from '../mirror.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import {
  type DesiredMirror,
  desiredMirrorAfter,
  desiredMirrorAsFound,
  foreignChange,
  hasMirrorDrifted,
  type MirrorAdoptionPolicy,
  type MirrorChange,
  planMirror,
  planMirrorDeletion,
  planMirrorRelease,
  settled,
} from './mirror-plan.ts';
import type { MirrorRequests, ReceivedRequests } from './mirror-requests.ts';

/** What a {@link MirrorKeeper} needs of the hub and of its peer. */
export interface MirrorKeeperOptions {
  readonly agent: string;
  /** The hub's name for the agent's cluster; undefined while there is none. */
  readonly cluster: () => string | undefined;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The labels of a mirror, made of those that its agent's Application has. */
  readonly labelsOf: LabelCompletion;
  /** The hub's Applications. */
  readonly view: View<Application>;
  /** Names of the Applications in the agent's namespace. */
  readonly names: () => Iterable<string>;
  readonly writer: PlanWriter<Application>;
  readonly requests: MirrorRequests;
  /** Has {@link MirrorKeeper.reconcile} called for this name, in its turn. */
  readonly reconcile: (name: string) => void;
  /** Whether work for this name waits or is under way. */
  readonly isBusy: (name: string) => boolean;
  /** Asks the agent to report its Application of this name. */
  readonly ask: (name: string) => void;
  readonly onFailure: (failure: MirrorFailure) => void;
  /** Somebody of the hub has changed or deleted a mirror, which is now as before. */
  readonly onPutBack: (mirror: Application, was: MirrorChange) => void;
  readonly runtime: Runtime;
}

/** An agent's report of one of its Applications, and what the agent had received of the hub's requests by then. */
interface Report {
  readonly source: Application;
  readonly received: ReceivedRequests;
}

/** Keeps the mirrors of one agent as the agent reported last. */
export class MirrorKeeper {
  readonly #options: MirrorKeeperOptions;
  readonly #copies: CopyKeeper<Application, DesiredMirror>;
  #cluster: string | undefined;

  constructor(options: MirrorKeeperOptions) {
    this.#options = options;
    const { agent, view, writer, runtime } = options;
    this.#copies = new CopyKeeper<Application, DesiredMirror>({
      names: mirrorNames,
      view,
      writer,
      isTrusted: false,
      found: (mirror) => (isMarked(mirror) && !isSkipped(mirror) ? desiredMirrorAsFound(mirror, agent) : undefined),
      settled: (desired, mirror) => (mirror !== undefined && isSkipped(mirror) ? desired : settled(desired, mirror)),
      sourceUid: (desired) => desired.sourceUid,
      hasDrifted: (mirror, desired) => {
        const place = this.#place();
        return place !== undefined && hasMirrorDrifted(mirror, desired, place);
      },
      reconcile: ({ name }) => options.reconcile(name),
      ask: ({ name }) => options.ask(name),
      // The status, and what it answers, come with a report alone.
      asksAfterFailure: true,
      failed: ({ name }, message) => {
        runtime.log.error({ agent, application: `${agent}/${name}` }, `Application cannot be mirrored: ${message}`);
        options.onFailure({ agent, name, message });
      },
      runtime,
    });
  }

  /** Mirrors that cannot be written, or that somebody keeps changing. */
  get retrying(): number {
    return this.#copies.retrying;
  }

  /** Applications that the agent has, as far as it reported. */
  get size(): number {
    return this.#copies.size;
  }

  /** The agent's last report of this name. */
  desired(name: string): DesiredMirror | undefined {
    return this.#copies.desired(this.#ref(name));
  }

  /** Names of all Applications in the agent's namespace, and of those that should be there but cannot. */
  names(): Iterable<string> {
    return new Set([...this.#options.names(), ...Array.from(this.#copies.refs(), ({ name }) => name)]);
  }

  failures(): MirrorFailure[] {
    const { agent } = this.#options;
    return this.#copies.failures().map(({ ref: { name }, message }) => ({ agent, name, message }));
  }

  hasFailed(name: string): boolean {
    return this.#copies.hasFailed(this.#ref(name));
  }

  /** What the agent sent cannot be mirrored. */
  refuse(name: string, message: string): void {
    this.#copies.refuse(this.#ref(name), message);
  }

  /** Stops all timers. */
  close(): void {
    this.#copies.close();
  }

  /** Carries out a message of the agent. */
  async take(message: ApplicationMessage, received: ReceivedRequests, signal: AbortSignal): Promise<InboxOutcome> {
    const { type, object } = message;
    const { name, uid = '' } = object.metadata;
    if (type === 'delete') {
      return this.#remove(name, uid, signal);
    }
    this.#copies.desire(this.#ref(name), desiredMirrorAfter(object, this.desired(name)));
    return this.#reconcile(name, { source: object, received }, signal);
  }

  /** Reverts what somebody changed. */
  reconcile(name: string, signal: AbortSignal): Promise<InboxOutcome> {
    return this.desired(name) === undefined
      ? this.#settleUnknown(name, signal)
      : this.#reconcile(name, undefined, signal);
  }

  /** Records the mirrors that an earlier process made. Called once. */
  begin(): void {
    this.#cluster = this.#options.cluster();
    for (const name of this.#options.names()) {
      const mirror = this.mirror(name);
      if (mirror !== undefined) {
        this.#copies.adopt(mirror, this.#ref(name));
      }
      this.#options.requests.follow(name, mirror);
    }
    this.#copies.reconcileDrifted();
  }

  /** The hub's object of this name changed. */
  hubChange(name: string, change: StoreChange<Application>): void {
    const mirror = this.mirror(name);
    this.#options.requests.follow(name, mirror);
    if (this.desired(name) !== undefined) {
      this.#copies.localChange(this.#ref(name), change);
    } else if (mirror !== undefined && !this.#options.isBusy(name)) {
      this.#options.reconcile(name);
    }
  }

  /** The hub's name for the agent's cluster may have changed. */
  clusterChanged(): void {
    const cluster = this.#options.cluster();
    if (cluster === this.#cluster) {
      return;
    }
    this.#cluster = cluster;
    this.#copies.reconcileDrifted();
  }

  async #reconcile(name: string, report: Report | undefined, signal: AbortSignal): Promise<InboxOutcome> {
    const { agent, adoptionPolicy, labelsOf, requests, onPutBack, runtime } = this.#options;
    const ref = this.#ref(name);
    const today = runtime.today();
    let plannedPlace = this.#place();
    let change: MirrorChange | undefined;
    // What was refused before is the agent's own.
    const isRetry = this.hasFailed(name);
    const plan = (mirror: Application | undefined): Plan => {
      const desired = this.desired(name);
      const place = this.#place();
      plannedPlace = place;
      if (desired === undefined || (mirror !== undefined && isSkipped(mirror))) {
        return { action: 'none' };
      }
      if (place === undefined) {
        return { action: 'refuse', message: `the hub's Argo CD has no cluster for agent ${agent}`, mayPass: true };
      }
      const next = planMirror(desired, mirror, {
        name,
        place,
        adoptionPolicy,
        labelsOf,
        now: today,
        report: mirror && report && { source: report.source, context: requests.context(mirror, report.received) },
      });
      if (report === undefined && !isRetry && change === undefined && next.action !== 'none') {
        change = foreignChange(mirror, desired, place);
      }
      if (mirror !== undefined && report !== undefined && next.action === 'update') {
        requests.expect(name, mirror, report.source, next.patch);
      }
      return next;
    };
    const outcome = await this.#copies.reconcile(ref, plan, report === undefined, signal);
    if (plannedPlace?.cluster !== this.#place()?.cluster) {
      // The cluster changed after the last plan.
      this.#options.reconcile(name);
    }
    const now = this.mirror(name);
    requests.follow(name, now);
    if (outcome === 'done' && change !== undefined && now !== undefined && !this.hasFailed(name)) {
      onPutBack(now, change);
    }
    return outcome;
  }

  async #remove(name: string, sourceUid: string, signal: AbortSignal): Promise<InboxOutcome> {
    const desired = this.desired(name);
    const isDesired = desired?.sourceUid === sourceUid;
    const plan = (mirror: Application | undefined): Plan =>
      mirror === undefined || isSkipped(mirror)
        ? { action: 'none' }
        : planMirrorDeletion(sourceUid, mirror, isDesired ? desired : undefined);
    const outcome = await this.#copies.remove(this.#ref(name), plan, isDesired, signal);
    return outcome === 'retry' || this.mirror(name) === undefined ? outcome : this.#settleUnknown(name, signal);
  }

  /** This process did not make the mirror: a deleted one is released, and of another one the agent is asked for a report. */
  async #settleUnknown(name: string, signal: AbortSignal): Promise<InboxOutcome> {
    const mirror = this.mirror(name);
    if (mirror === undefined || mirror.metadata.deletionTimestamp !== undefined) {
      // Also when it is gone by now: that it could not be released stands in the way of nothing any more.
      return this.#copies.remove(this.#ref(name), planMirrorRelease, false, signal);
    }
    this.#options.ask(name);
    return 'done';
  }

  /** UID of the agent's Application that is shown under this name, or should be; empty when there is none. */
  shownUid(name: string): string {
    const mirror = this.mirror(name);
    const desired = this.desired(name);
    if (mirror === undefined || mirror.metadata.uid === desired?.mirrorUid) {
      return desired?.sourceUid ?? '';
    }
    return mirroredUid(mirror);
  }

  /** What a mirror of this name shows, as its agent has it: without the labels that only the hub asks for. */
  fieldsShown(name: string, mirror: Application): MirrorFields {
    const { agent, labelsOf } = this.#options;
    const fields = fieldsOfMirror(mirror, agent);
    const reported = this.desired(name)?.fields.labels;
    return reported !== undefined && isEqual(labelsOf(reported), fields.labels)
      ? { ...fields, labels: reported }
      : fields;
  }

  /** The mirror of this name, if there is one. */
  mirror(name: string): Application | undefined {
    const object = this.#options.view.get(this.#ref(name));
    const isOurs =
      object !== undefined && (mirroredUid(object) !== '' || object.metadata.uid === this.desired(name)?.mirrorUid);
    return isOurs && !isSkipped(object) ? object : undefined;
  }

  #place(): MirrorPlace | undefined {
    const { agent, cluster } = this.#options;
    const name = cluster();
    return name === undefined ? undefined : { agent, cluster: name };
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.agent, name };
  }
}
