import { z } from 'zod';
import { annotations } from '../../lib/argocd/index.ts';
import { becomes, hasGoneBack, isNewerVersion, type Logger, wellKnown } from '../../lib/base/index.ts';
import { retryForever, startInformer } from '../../lib/bridge/index.ts';
import { type KubeClient, type Lease, leases } from '../../lib/kube/index.ts';
import { retryConflicts } from './retry-conflicts.ts';
import { type HaState, haStates } from './states.ts';

/** What all principals of a hub are, or are about to be. */
export const hubRoles = ['active', 'demoting', 'standby', 'promoting'] as const;

/** One of the {@link hubRoles}. */
export type HubRoleName = (typeof hubRoles)[number];

/** The role of a hub. */
export interface HubRole {
  readonly current: HubRoleName;
  /** The state of the principal of this hub that follows the other one, if that is not this one and has said so. */
  readonly followerState: HaState | undefined;
  /** What that one cannot put back of what was changed on this hub, by name. */
  readonly changedHere: readonly string[];
  /** Changes the role; false, and nothing changes, when it is not `from` any more. @throws when that cannot be recorded */
  change(from: HubRoleName, to: HubRoleName): Promise<boolean>;
  /** This principal follows the other hub: tells the others its state, and what it cannot put back. */
  report(state: HaState, changedHere?: readonly string[]): void;
  /** Calls the listener after each change of the role or of the follower's state. Returns the function that ends this. */
  subscribe(listener: () => void): () => void;
}

/** The role of a hub with one principal, which decides at each start by what it prefers, as in argocd-agent. */
export class OwnRole implements HubRole {
  readonly followerState = undefined;
  readonly changedHere = [];
  #current: HubRoleName;
  readonly #listeners = new Set<() => void>();

  constructor(preferred: HubRoleName) {
    this.#current = preferred;
  }

  get current(): HubRoleName {
    return this.#current;
  }

  async change(from: HubRoleName, to: HubRoleName): Promise<boolean> {
    if (this.#current !== from) {
      return false;
    }
    this.#current = to;
    for (const listener of this.#listeners) {
      listener();
    }
    return true;
  }

  report(): void {
    // There is nobody to be told.
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

const name = 'argocd-agent.hub-role';
/** Objects that the Lease names, and a refusal to promote. */
export const mostNamed = 20;
/** Pods whose preference is remembered: more than a hub has at a time. */
const mostPods = 50;
const pods = z.array(z.tuple([z.string().max(253), z.enum(['active', 'standby'])])).max(mostPods);
const names = z.array(z.string().max(600)).max(mostNamed);

/** What {@link SharedRole} needs. */
export interface SharedRoleOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** The role when none is recorded, or when another one was preferred then. */
  readonly preferred: 'active' | 'standby';
  /** The name of this principal's pod, which restarts with the same preference. */
  readonly pod: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  failed(error: unknown): void;
}

/**
 * The role of a hub with several principals: an annotation of Lease `argocd-agent.hub-role`, which outlives all of them. What
 * was promoted or demoted stays so after a restart, until another role is preferred.
 */
export class SharedRole implements HubRole {
  readonly #options: SharedRoleOptions;
  readonly #listeners = new Set<() => void>();
  #lease: Lease;
  #toReport: Record<string, string> | undefined;
  #isReporting = false;

  private constructor(options: SharedRoleOptions, lease: Lease) {
    this.#options = options;
    this.#lease = lease;
    const { client, namespace, logger, signal, failed } = options;
    startInformer({
      client,
      type: leases,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      logger,
      signal,
      failed,
    }).subscribe({
      added: (lease, _, gap) => (gap === 'restore' ? this.#take(lease) : this.#observe(lease)),
      updated: (old, now, gap) =>
        gap === 'restore' || hasGoneBack(old.metadata, now.metadata) ? this.#take(now) : this.#observe(now),
    });
  }

  /** Reads the role, or records the preferred one, for as long as the API server cannot be asked. */
  static async open(options: SharedRoleOptions): Promise<SharedRole> {
    const { signal, logger } = options;
    const lease = await retryForever('read the role of this hub', () => recordedRole(options), { signal, logger });
    return new SharedRole(options, lease);
  }

  get current(): HubRoleName {
    return roleIn(this.#lease) ?? 'standby';
  }

  get followerState(): HaState | undefined {
    const state = this.#lease.metadata.annotations?.[annotations.followerState];
    return haStates.find((known) => known === state);
  }

  get changedHere(): readonly string[] {
    const text = this.#lease.metadata.annotations?.[annotations.changedOnStandby] ?? '[]';
    try {
      return names.parse(JSON.parse(text));
    } catch {
      return [];
    }
  }

  change(from: HubRoleName, to: HubRoleName): Promise<boolean> {
    return this.#annotate((lease) => (roleIn(lease) === from ? { [annotations.hubRole]: to } : undefined));
  }

  /** The newest state is recorded; a failure is tried again with the next one. */
  report(state: HaState, changedHere: readonly string[] = []): void {
    this.#toReport = {
      [annotations.followerState]: state,
      [annotations.changedOnStandby]: JSON.stringify(changedHere.slice(0, mostNamed)),
    };
    if (!this.#isReporting) {
      this.#isReporting = true;
      void this.#report().finally(() => {
        this.#isReporting = false;
      });
    }
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #report(): Promise<void> {
    while (this.#toReport !== undefined) {
      const notes = this.#toReport;
      this.#toReport = undefined;
      try {
        await this.#annotate(() => notes);
      } catch (error) {
        this.#options.logger.warn({ error, notes }, 'the other principals of this hub are not told the state');
      }
    }
  }

  /** False when `notesFor` wants nothing of the newest version. */
  async #annotate(notesFor: (lease: Lease) => Record<string, string> | undefined): Promise<boolean> {
    const { client, namespace, signal } = this.#options;
    return await retryConflicts(async () => {
      const found = await client.get(leases, { namespace, name }, signal);
      // Somebody has deleted it: what it said still holds.
      const lease = found ?? withNotes(newLease(namespace), this.#lease.metadata.annotations ?? {});
      const notes = notesFor(lease);
      if (notes === undefined) {
        this.#observe(lease);
        return false;
      }
      const next = withNotes(lease, notes);
      this.#observe(await (found ? client.replace(leases, next, { signal }) : client.create(leases, next, { signal })));
      return true;
    });
  }

  /** What was written here may be newer than what the watch reports. */
  #observe(lease: Lease): void {
    const { resourceVersion: seen = '' } = this.#lease.metadata;
    if (isNewerVersion(lease.metadata.resourceVersion, seen)) {
      this.#take(lease);
    }
  }

  #take(lease: Lease): void {
    const [role, state] = [this.current, this.followerState];
    this.#lease = lease;
    if (this.current === role && this.followerState === state) {
      return;
    }
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** Resolves when the role is not `role` any more, true, or after `ms` or when aborted, false. */
export function roleLeft(hub: HubRole, role: HubRoleName, ms: number, signal: AbortSignal): Promise<boolean> {
  return becomes(
    () => hub.current !== role,
    (look) => hub.subscribe(look),
    ms,
    signal,
  );
}

/**
 * Each pod's preference decides once. One that restarts during a rolling update of the preference has been outvoted, and would
 * turn the role back.
 */
async function recordedRole(options: SharedRoleOptions): Promise<Lease> {
  const { client, namespace, preferred, pod, signal, logger } = options;
  const found = await client.get(leases, { namespace, name }, signal);
  const stated = new Map(statedIn(found));
  const isNews = stated.get(pod) !== preferred;
  stated.delete(pod);
  stated.set(pod, preferred);
  const last = JSON.stringify([...stated].slice(-mostPods));
  const decided = { [annotations.hubRole]: preferred, [annotations.preferredRole]: preferred };
  if (found === undefined) {
    const notes = { ...decided, [annotations.preferredByPod]: last };
    return await client.create(leases, withNotes(newLease(namespace), notes), { signal });
  }
  const isDecided = roleIn(found) !== undefined;
  const isPreferred = found.metadata.annotations?.[annotations.preferredRole] === preferred;
  if (isDecided && !isNews) {
    if (!isPreferred) {
      logger.warn(
        { role: roleIn(found), preferred },
        'another role of this hub is preferred since this pod began: this one does not decide again',
      );
    }
    return found;
  }
  const notes = { ...(isDecided && isPreferred ? {} : decided), [annotations.preferredByPod]: last };
  return await client.replace(leases, withNotes(found, notes), { signal });
}

function statedIn(lease: Lease | undefined): [pod: string, preferred: string][] {
  const text = lease?.metadata.annotations?.[annotations.preferredByPod];
  try {
    return text === undefined ? [] : pods.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

function newLease(namespace: string): Lease {
  return { metadata: { namespace, name, labels: { [wellKnown.partOfLabel]: 'argocd-agent' } } };
}

function roleIn({ metadata }: Lease): HubRoleName | undefined {
  return hubRoles.find((role) => role === metadata.annotations?.[annotations.hubRole]);
}

function withNotes(lease: Lease, notes: Record<string, string>): Lease {
  return { ...lease, metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...notes } } };
}
