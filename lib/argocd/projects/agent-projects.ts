import { randomUUID } from 'node:crypto';
import {
  type Clock,
  failureOf,
  Inbox,
  type MergePatch,
  type ObjectRef,
  type Store,
  systemClock,
  View,
} from '../../sync/index.ts';
import { projectDigest } from '../app-project-rules.ts';
import type { AppProject } from '../application.ts';
import { specChecksum } from '../checksums.ts';
import type { SyncLog } from '../managed/log.ts';
import type { AppProjectMessage, PeerConnection, RequestUpdate } from '../managed/messages.ts';
import type { SyncStats } from '../managed/stats.ts';
import { mergePatchBetween } from '../merge-patch.ts';
import { annotations } from '../names.ts';
import type { AgentKind, Copy, MirrorPart, ObjectMessage } from '../parts/part.ts';

/** How {@link AgentProjects} works. */
export interface AgentProjectsOptions {
  /** The AppProjects of the agent's namespace. */
  readonly store: Store<AppProject>;
  readonly namespace: string;
  readonly log: SyncLog;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly newId?: () => string;
}

/** What the principal said last about a project, and what the API server made of it. */
interface Wanted {
  readonly object: AppProject;
  settled: string | undefined;
}

type Work =
  | { readonly is: 'message'; readonly message: AppProjectMessage }
  | { readonly is: 'look'; readonly name: string; readonly id: string; readonly doubtful?: boolean };

const maxSteps = 6;

/**
 * Makes AppProjects on the managed cluster what the principal says, and puts back what others change. A project that was
 * there before is taken over, as argocd-agent does; one that came from another hub project of the same name is changed in
 * place, so that no Application is without its project for a moment.
 */
export class AgentProjects implements AgentKind<MirrorPart> {
  readonly kind = 'AppProject';
  readonly #options: AgentProjectsOptions;
  readonly #newId: () => string;
  readonly #view: View<AppProject>;
  readonly #wanted = new Map<string, Wanted>();
  #inbox: Inbox<Work> | undefined;
  #connection: PeerConnection | undefined;

  constructor(options: AgentProjectsOptions) {
    this.#options = options;
    this.#newId = options.newId ?? randomUUID;
    const { clock = systemClock } = options;
    this.#view = new View({
      clock,
      changed: (_, { old, now }) => this.#localChange(now ?? old, now),
      doubted: ({ name }) => this.#inbox?.receive({ is: 'look', name, id: this.#newId(), doubtful: true }),
    });
  }

  /** Follows the store until aborted; call it when the store's cache is filled. */
  start(signal: AbortSignal): void {
    const { log, clock, random } = this.#options;
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => {
          if (work.is === 'message') this.#connection?.acknowledge(work.message);
        },
        laneOf: nameOf,
        idOf: (work) =>
          work.is === 'look' ? work.id : `${work.message.type}/${work.message.resourceId}/${work.message.eventId}`,
        supersedes: (newer, older) => newer.is === 'look' && older.is === 'look',
        onError: (error, work, attempt) =>
          log.warn({ error, appProject: nameOf(work), attempt }, 'AppProject not written, will retry'),
        ...(clock === undefined ? {} : { clock }),
        ...(random === undefined ? {} : { random }),
      },
      signal,
    );
    const unfollow = this.#view.follow(this.#options.store);
    signal.addEventListener('abort', () => unfollow());
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#inbox?.reconnected();
  }

  disconnected(): void {
    this.#connection = undefined;
  }

  writable(): void {
    // Nothing is sent but acknowledgements.
  }

  acknowledged(): boolean {
    return false;
  }

  receive(message: ObjectMessage): boolean {
    if (message.target !== 'appproject') return false;
    this.#inbox?.receive({ is: 'message', message });
    return true;
  }

  copies(): Copy[] {
    const copies = [];
    for (const local of this.#view.values()) {
      const uid = local.metadata.annotations?.[annotations.sourceUid];
      const { name } = local.metadata;
      if (uid) copies.push({ ref: { namespace: this.#options.namespace, name }, name, uid });
    }
    return copies;
  }

  holding({ name, namespace }: ObjectRef): RequestUpdate {
    const local = this.#view.get({ namespace, name });
    const uid = local?.metadata.annotations?.[annotations.sourceUid] ?? '';
    const checksum = local === undefined ? null : specChecksum(local.spec);
    return { kind: 'AppProject', name, namespace, uid, checksum };
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }

  sourceRestarted(): void {
    // It is told what is here, and there is nothing else to tell.
  }

  stats(): SyncStats {
    return { pending: 0, inFlight: 0, queued: this.#inbox?.queued ?? 0, retrying: this.#inbox?.retrying ?? 0 };
  }

  close(): void {
    this.#connection = undefined;
  }

  async #apply(work: Work, signal: AbortSignal): Promise<'done' | 'retry'> {
    if (work.is === 'message') {
      const { type, object } = work.message;
      const { name, uid } = object.metadata;
      if (type === 'delete') return this.#remove(name, uid ?? '', signal);
      this.#wanted.set(name, { object, settled: undefined });
    }
    if (work.is === 'look' && work.doubtful) await this.#read(work.name, signal);
    return this.#bringInStep(nameOf(work), signal);
  }

  async #bringInStep(name: string, signal: AbortSignal): Promise<'done' | 'retry'> {
    const { store, namespace, log } = this.#options;
    const ref = { namespace, name };
    for (let step = 0; step < maxSteps; step++) {
      const wanted = this.#wanted.get(name);
      const local = this.#view.get(ref);
      if (wanted === undefined || local?.metadata.deletionTimestamp !== undefined) return 'done';
      const patch = local && patchFor(wanted.object, local);
      try {
        if (local === undefined) {
          this.#view.learn(await store.create(newCopy(wanted.object, namespace), signal));
          log.info({ appProject: name }, 'AppProject created');
        } else if (patch !== undefined && projectDigest(local) !== wanted.settled) {
          this.#view.learn(await store.patch(ref, patch, signal));
          log.info({ appProject: name }, 'AppProject updated');
        }
        const now = this.#view.get(ref);
        wanted.settled = now && projectDigest(now);
        return 'done';
      } catch (error) {
        await this.#again(error, name, signal);
      }
    }
    return 'retry';
  }

  async #remove(name: string, sourceUid: string, signal: AbortSignal): Promise<'done' | 'retry'> {
    const { store, namespace, log } = this.#options;
    const ref = { namespace, name };
    if (this.#wanted.get(name)?.object.metadata.uid === sourceUid) this.#wanted.delete(name);
    for (let step = 0; step < maxSteps; step++) {
      const local = this.#view.get(ref);
      const own = local?.metadata.annotations?.[annotations.sourceUid];
      if (local === undefined || own !== sourceUid || local.metadata.deletionTimestamp !== undefined) return 'done';
      try {
        await store.delete(ref, { uid: local.metadata.uid ?? '', propagation: 'Background' }, signal);
        log.info({ appProject: name }, 'AppProject deleted');
        return 'done';
      } catch (error) {
        await this.#again(error, name, signal);
      }
    }
    return 'retry';
  }

  /** Looks at what is there after a write that met something else; throws what only time or people can mend. */
  async #again(error: unknown, name: string, signal: AbortSignal): Promise<void> {
    const failure = failureOf(error);
    if (failure === 'rejected' || failure === 'transient') throw error;
    await this.#read(name, signal);
  }

  async #read(name: string, signal: AbortSignal): Promise<void> {
    const ref = { namespace: this.#options.namespace, name };
    const before = this.#view.get(ref);
    const now = await this.#options.store.read(ref, signal);
    if (now !== undefined) this.#view.learn(now);
    else if (before !== undefined) this.#view.lost(before);
  }

  #localChange(changed: AppProject | undefined, now: AppProject | undefined): void {
    const name = changed?.metadata.name ?? '';
    const wanted = this.#wanted.get(name);
    if (wanted === undefined || (now !== undefined && projectDigest(now) === wanted.settled)) return;
    this.#inbox?.receive({ is: 'look', name, id: this.#newId() });
  }
}

function nameOf(work: Work): string {
  return work.is === 'look' ? work.name : work.message.object.metadata.name;
}

const hubOnly: ReadonlySet<string> = new Set([annotations.lastApplied, annotations.lastUpdated, annotations.sourceUid]);

/** What a copy takes over from the project that a principal sent. */
function projectFields({ metadata, spec }: AppProject) {
  const { labels = {}, annotations: all = {}, finalizers = [] } = metadata;
  const shared = Object.fromEntries(Object.entries(all).filter(([key]) => !hubOnly.has(key)));
  return { labels, annotations: shared, finalizers, spec };
}

function newCopy(wanted: AppProject, namespace: string): AppProject {
  const { labels, annotations: shared, finalizers, spec } = projectFields(wanted);
  const { name, uid = '' } = wanted.metadata;
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'AppProject',
    metadata: { name, namespace, labels, finalizers, annotations: { ...shared, [annotations.sourceUid]: uid } },
    spec,
  };
}

function patchFor(wanted: AppProject, local: AppProject): MergePatch | undefined {
  const { labels, annotations: shared, finalizers, spec } = projectFields(wanted);
  const present = local.metadata.annotations ?? {};
  const lastApplied = present[annotations.lastApplied];
  const goal = {
    labels,
    annotations: {
      ...shared,
      ...(lastApplied === undefined ? {} : { [annotations.lastApplied]: lastApplied }),
      [annotations.sourceUid]: wanted.metadata.uid ?? '',
    },
    finalizers: [...new Set([...(local.metadata.finalizers ?? []), ...finalizers])],
  };
  const { labels: localLabels = {}, finalizers: localFinalizers = [] } = local.metadata;
  const metadata = mergePatchBetween({ labels: localLabels, annotations: present, finalizers: localFinalizers }, goal);
  const difference = mergePatchBetween(local.spec, spec);
  if (metadata === undefined && difference === undefined) return undefined;
  return {
    metadata: { ...metadata, uid: local.metadata.uid },
    ...(difference === undefined ? {} : { spec: difference }),
  };
}
