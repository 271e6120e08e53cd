import type { InboxOutcome, ObjectRef, Runtime, View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';
import { placeOf } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import type { ApplicationWriter } from '../../writing/application-writer.ts';
import { ConflictBackoff } from '../../writing/conflict-backoff.ts';
import { Failures } from '../../writing/failures.ts';
import { isMarked, type MirrorPlace, mirroredUid } from '../mirror.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import {
  type DesiredMirror,
  desiredMirrorAfter,
  desiredMirrorAsFound,
  hasMirrorDrifted,
  type MirrorAdoptionPolicy,
  planMirror,
  planMirrorDeletion,
  planMirrorRelease,
  settled,
} from './mirror-plan.ts';
import type { MirrorRequests, ReceivedRequests } from './mirror-requests.ts';
import { MissingNamespace } from './missing-namespace.ts';

/** What a {@link MirrorKeeper} needs of the hub and of its peer. */
export interface MirrorKeeperOptions {
  readonly agent: string;
  /** What the hub calls the agent's cluster; undefined while there is none. */
  readonly cluster: () => string | undefined;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The hub's Applications. */
  readonly view: View<Application>;
  /** Names of the Applications in the agent's namespace. */
  readonly names: () => Iterable<string>;
  readonly writer: ApplicationWriter;
  readonly requests: MirrorRequests;
  /** Has {@link MirrorKeeper.reconcile} called for this name, in its turn. */
  readonly reconcile: (name: string) => void;
  /** Whether something of this name waits or is in work. */
  readonly isBusy: (name: string) => boolean;
  /** Makes the agent say what it has of this name. */
  readonly ask: (name: string) => void;
  readonly onFailure: (trouble: MirrorFailure) => void;
  readonly runtime: Runtime;
}

/** The agent's word on one of its Applications, with what it had got of the hub's requests by then. */
interface Report {
  readonly source: Application;
  readonly received: ReceivedRequests;
}

/**
 * What the API server refuses is kept to be tried again, in these bounds: an agent can make up as many Applications as it
 * likes, as large as it likes.
 */
const mostTroubles = 1_000;
/** In characters of JSON. */
const largestTrouble = 512 * 1024;

/** Keeps the mirrors of one agent as it said last: the one place that writes them. */
export class MirrorKeeper {
  readonly #options: MirrorKeeperOptions;
  readonly #desired = new Map<string, DesiredMirror>();
  readonly #failures: Failures;
  readonly #conflicts: ConflictBackoff;
  #cluster: string | undefined;

  constructor(options: MirrorKeeperOptions) {
    this.#options = options;
    this.#conflicts = new ConflictBackoff({
      noun: 'Application',
      logFields: (ref) => ({ application: placeOf(ref) }),
      runtime: options.runtime,
    });
    this.#failures = new Failures(options.runtime);
  }

  /** Mirrors that cannot be written, or that somebody fights over. */
  get troubled(): number {
    return this.#failures.size + this.#conflicts.active;
  }

  /** Applications that the agent has, as far as it said. */
  get size(): number {
    return this.#desired.size;
  }

  /** What the agent said last of this name. */
  desired(name: string): DesiredMirror | undefined {
    return this.#desired.get(name);
  }

  /** Names of all that stands on the hub, and of what should but cannot. */
  names(): Iterable<string> {
    return new Set([...this.#options.names(), ...this.#desired.keys()]);
  }

  troubles(): MirrorFailure[] {
    const { agent } = this.#options;
    return this.#failures.list().map((trouble) => ({ agent, ...trouble }));
  }

  isTroubled(name: string): boolean {
    return this.#failures.has(name);
  }

  /** Stops all timers. */
  close(): void {
    this.#failures.close();
    this.#conflicts.close();
  }

  /** Does what the agent says. */
  async take(message: ApplicationMessage, received: ReceivedRequests, signal: AbortSignal): Promise<InboxOutcome> {
    const { type, object } = message;
    const { name, uid = '' } = object.metadata;
    if (type === 'delete') {
      return this.#remove(name, uid, signal);
    }
    this.#desired.set(name, desiredMirrorAfter(object, this.#desired.get(name)));
    return this.#bringInStep(name, { source: object, received }, signal);
  }

  /** Puts right what somebody changed. */
  reconcile(name: string, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#bringInStep(name, undefined, signal);
  }

  /** Takes up what is there. Called once. */
  begin(): void {
    const { agent, cluster } = this.#options;
    this.#cluster = cluster();
    for (const name of this.#options.names()) {
      const mirror = this.mirror(name);
      if (mirror !== undefined && isMarked(mirror)) {
        this.#desired.set(name, desiredMirrorAsFound(mirror, agent));
      }
      this.#options.requests.follow(name, mirror);
    }
    this.#lookAtAll();
  }

  /** The hub's object of this name changed. */
  hubChange(name: string, now: Application | undefined): void {
    const mirror = this.mirror(name);
    this.#options.requests.follow(name, mirror);
    const desired = this.#desired.get(name);
    const place = this.#place();
    if (desired === undefined) {
      if (mirror !== undefined && !this.#options.isBusy(name)) {
        this.#options.reconcile(name);
      }
    } else if (
      now === undefined ||
      this.#failures.has(name) ||
      (place !== undefined && hasMirrorDrifted(now, desired, place))
    ) {
      this.#conflicts.whenDue(this.#ref(name), () => this.#options.reconcile(name));
    }
  }

  /** What the hub calls the agent's cluster may have changed. */
  clusterChanged(): void {
    const cluster = this.#options.cluster();
    if (cluster !== this.#cluster) {
      this.#cluster = cluster;
      for (const [name, desired] of this.#desired) {
        this.#desired.set(name, { ...desired, settledSpec: undefined });
      }
      this.#lookAtAll();
    }
  }

  /** Puts right what is not as the agent said. */
  #lookAtAll(): void {
    const place = this.#place();
    for (const [name, desired] of this.#desired) {
      const mirror = this.#options.view.get(this.#ref(name));
      if (
        mirror === undefined ||
        this.#failures.has(name) ||
        (place !== undefined && hasMirrorDrifted(mirror, desired, place))
      ) {
        this.#options.reconcile(name);
      }
    }
  }

  /** The one place that makes a mirror what the agent says. */
  async #bringInStep(name: string, report: Report | undefined, signal: AbortSignal): Promise<InboxOutcome> {
    const { agent, adoptionPolicy, writer } = this.#options;
    const desired = this.#desired.get(name);
    const place = this.#place();
    if (desired === undefined) {
      return this.#settleUnknown(name, signal);
    }
    if (place === undefined) {
      this.#fail(name, `the hub's Argo CD has no cluster for agent ${agent}`);
      return 'retry';
    }
    const now = this.#options.runtime.today();
    let writes = false;
    const plan = (mirror: Application | undefined) => {
      if (mirror !== undefined && isSkipped(mirror)) {
        return { action: 'none' } as const;
      }
      const next = planMirror(desired, mirror, {
        name,
        place,
        adoptionPolicy,
        now,
        report: mirror &&
          report && { source: report.source, context: this.#options.requests.context(mirror, report.received) },
      });
      if (mirror !== undefined && report !== undefined && next.action === 'update') {
        this.#options.requests.expect(name, mirror, report.source, next.patch);
      }
      writes ||= next.action === 'create' || next.action === 'update';
      return next;
    };
    try {
      const result = await writer.run(this.#ref(name), plan, signal);
      this.#options.requests.follow(name, this.mirror(name));
      if (writes && report === undefined) {
        this.#conflicts.recordPutBack(this.#ref(name));
      }
      switch (result.is) {
        case 'done':
          this.#failures.solved(name);
          this.#settle(name, result.copy);
          return 'done';
        case 'stopped':
          return this.#stopped(name, result);
        default:
          return 'retry';
      }
    } catch (error) {
      if (!(error instanceof MissingNamespace)) {
        throw error;
      }
      this.#fail(name, error.message);
      return 'retry';
    }
  }

  #fail(name: string, message: string, again?: () => void): void {
    if (this.#failures.met(name, message, again)) {
      const { agent, onFailure } = this.#options;
      const { log } = this.#options.runtime;
      log.error({ agent, application: `${agent}/${name}` }, `Application cannot be mirrored: ${message}`);
      onFailure({ agent, name, message });
    }
  }

  #stopped(name: string, { message, rejected, mayPass }: { message: string; rejected: boolean; mayPass: boolean }) {
    if (mayPass) {
      this.#fail(name, message);
      return 'retry';
    }
    // What the agent said is remembered, and tried again when something changes.
    this.#fail(name, message, rejected ? () => this.#options.reconcile(name) : undefined);
    const size = JSON.stringify(this.#desired.get(name)?.fields ?? null).length;
    if (this.#failures.size > mostTroubles || size > largestTrouble) {
      this.#giveUp(name);
    }
    return 'done';
  }

  /** Only the agent knows it from now on, which says it again with its next change or connection. */
  #giveUp(name: string): void {
    const mirror = this.mirror(name);
    this.#failures.solved(name);
    if (mirror !== undefined && isMarked(mirror)) {
      this.#desired.set(name, desiredMirrorAsFound(mirror, this.#options.agent));
    } else {
      this.#desired.delete(name);
    }
  }

  #settle(name: string, mirror: Application | undefined): void {
    const before = this.#desired.get(name);
    const place = this.#place();
    if (before === undefined || (mirror !== undefined && isSkipped(mirror))) {
      return;
    }
    const desired = settled(before, mirror);
    this.#desired.set(name, desired);
    const now = this.#options.view.get(this.#ref(name));
    if (mirror === undefined || place === undefined || now === mirror) {
      // What was looked at a moment ago, and left as it is, would be left again: only something else is a reason to look.
      return;
    }
    if (now === undefined || hasMirrorDrifted(now, desired, place)) {
      this.#conflicts.whenDue(this.#ref(name), () => this.#options.reconcile(name));
    }
  }

  async #remove(name: string, sourceUid: string, signal: AbortSignal): Promise<InboxOutcome> {
    const desired = this.#desired.get(name);
    const mirrorUid = desired?.sourceUid === sourceUid ? desired.mirrorUid : undefined;
    const result = await this.#options.writer.run(
      this.#ref(name),
      (mirror) =>
        mirror === undefined || isSkipped(mirror)
          ? { action: 'none' }
          : planMirrorDeletion(sourceUid, mirror, mirrorUid),
      signal,
    );
    if (result.is === 'stopped') {
      const { agent } = this.#options;
      const { log } = this.#options.runtime;
      log.error({ agent, application: placeOf(this.#ref(name)) }, `mirror not deleted: ${result.message}`);
    }
    if (result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass)) {
      return 'retry';
    }
    if (desired?.sourceUid === sourceUid) {
      this.#desired.delete(name);
      this.#failures.solved(name);
      this.#conflicts.forget(this.#ref(name));
    }
    return this.#settleUnknown(name, signal);
  }

  /** Nobody but this program makes mirrors: of another one the agent says what is to become of it. */
  async #settleUnknown(name: string, signal: AbortSignal): Promise<InboxOutcome> {
    const mirror = this.mirror(name);
    if (mirror?.metadata.deletionTimestamp !== undefined) {
      const result = await this.#options.writer.run(this.#ref(name), planMirrorRelease, signal);
      return result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass) ? 'retry' : 'done';
    }
    if (mirror !== undefined) {
      this.#options.ask(name);
    }
    return 'done';
  }

  /** UID of the agent's Application that is shown under this name, or should be; empty when there is none. */
  shownUid(name: string): string {
    const mirror = this.mirror(name);
    const desired = this.#desired.get(name);
    if (mirror === undefined || mirror.metadata.uid === desired?.mirrorUid) {
      return desired?.sourceUid ?? '';
    }
    return mirroredUid(mirror);
  }

  /** The mirror of this name, if there is one. */
  mirror(name: string): Application | undefined {
    const object = this.#options.view.get(this.#ref(name));
    const isOurs =
      object !== undefined &&
      (mirroredUid(object) !== '' || object.metadata.uid === this.#desired.get(name)?.mirrorUid);
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
