import { setTimeout as sleep } from 'node:timers/promises';
import { events, isNotFound } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import {
  type ArgoObject,
  adminName,
  namespace,
  pairApplicationSets,
  pairApplications,
  pairAppProjects,
} from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { persist } from '../testbed/index.ts';
import { untilAdmitted } from './admission.ts';
import { generatedBy } from './application-sets.ts';
import { keptOutLabel, type Ledger } from './ledger.ts';
import type { ChaosStage, StagedHub, StagedPrincipal } from './stage.ts';
import type { Users } from './users.ts';

const statusMs = 3_000;
/** `promote` waits 25 s for the Lease, and `demote` up to 30 s for its hub and a standby. */
const orderMs = 60_000;
/** How long a failover may take beside all other faults. */
const patienceMs = 240_000;
const lookEveryMs = 250;
/** How long users go on at a hub whose principals are all dead. */
const unheardMs = 1_500;
/** How old a change can be that the active hub's principal has not seen yet when it says that nothing is left: its watch may be dead. */
const unseenMs = 15_000;

/** Who {@link HubOperator} works with. */
export interface HubOperatorOptions {
  readonly stage: ChaosStage;
  readonly users: Pick<Users, 'pause' | 'resume'>;
  readonly ledger: Ledger;
  /** Of ApplicationSets. */
  readonly sets: Ledger;
  readonly projects: Ledger;
  readonly random: Random;
  readonly log: (line: string) => void;
}

/** The operator of two hubs: turns the fleet from one to the other, in order or after the active one has died. */
export class HubOperator {
  /** What failovers lost, and those that did not succeed, in words. */
  readonly findings: string[] = [];
  planned = 0;
  unplanned = 0;
  /** Edits that a hub which died had not told the other one. */
  undone = 0;
  readonly #options: HubOperatorOptions;
  #issued: { readonly bundle: string; readonly certificate: Promise<KeyCertificate> } | undefined;
  /** When the standby had everything last, by the monotonic clock, ms. */
  #inStepAt = 0;

  constructor(options: HubOperatorOptions) {
    this.#options = options;
  }

  /** Turns the fleet at random until aborted; one failover that has begun comes to its end. */
  async run(everyMs: number, signal: AbortSignal): Promise<void> {
    const { random, log } = this.#options;
    const watching = this.#watch(signal);
    for (let isPlanned = random.chance(0.5); !signal.aborted; isPlanned = !isPlanned) {
      const waitMs = random.integer(Math.round(everyMs * 0.6), Math.round(everyMs * 1.4));
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) {
        break;
      }
      const began = performance.now();
      const what = isPlanned ? 'planned failover' : 'failover after the death of the active hub';
      const { standby } = this.#options.stage;
      log(`${what} to ${standby?.name}`);
      try {
        await (isPlanned ? this.#planned() : this.#unplanned());
        log(`${what}: ${standby?.name} is active after ${((performance.now() - began) / 1000).toFixed(1)} s`);
      } catch (error) {
        this.findings.push(`${what} to ${standby?.name}: ${(error as Error).message}`);
        return;
      }
    }
    await watching;
  }

  async #planned(): Promise<void> {
    const { stage, users, log } = this.#options;
    const former = stage.active;
    await users.pause();
    await stage.active.setController.end('SIGTERM');
    const pausedAt = performance.now();
    await this.#until('the standby has everything', async () => (await this.#look()) > pausedAt);
    log(`${stage.standby?.name} has everything`);
    await this.#order(stage.active, 'demote');
    log(`${stage.active.name} is demoted`);
    await this.#takeOver(Number.POSITIVE_INFINITY);
    this.planned++;
    users.resume();
    await this.#cleanUp(former, isKeptOut);
  }

  async #unplanned(): Promise<void> {
    const { stage, users } = this.#options;
    const former = stage.active;
    await Promise.all(former.principals.map(({ part }) => part.hold()));
    const knownAt = this.#inStepAt - unseenMs;
    await sleep(unheardMs);
    await users.pause();
    await Promise.all([former.setController.end('SIGKILL'), former.cluster.apiServer.kill()]);
    const taken = await this.#takeOver(knownAt);
    this.unplanned++;
    users.resume();
    await former.cluster.apiServer.restart();
    const known = new Set(
      taken.flatMap(({ metadata: { deletionTimestamp, namespace, name } }) =>
        deletionTimestamp === undefined ? [`${namespace}/${name}`] : [],
      ),
    );
    await this.#cleanUp(
      former,
      (one) => isKeptOut(one) || !known.has(`${one.metadata.namespace}/${one.metadata.name}`),
    );
    for (const { part } of former.principals) {
      part.release();
    }
  }

  /** Promotes the standby, and takes what it has for what users want. Returns that. */
  async #takeOver(knownAt: number): Promise<readonly ArgoObject[]> {
    const { stage, ledger, sets, projects } = this.#options;
    const { standby } = stage;
    if (standby === undefined) {
      throw new Error('there is no other hub');
    }
    await this.#order(standby, 'promote');
    const { client } = standby.cluster;
    const [seen, seenSets, seenProjects] = await Promise.all([
      persist(() => client.list(pairApplications)),
      persist(() => client.list(pairApplicationSets)),
      persist(() => client.list(pairAppProjects, { namespace })),
    ]);
    standby.setController.start();
    stage.turn();
    this.#inStepAt = 0;
    ledger.excuseOperations();
    for (const { name } of stage.agents.filter(({ mode }) => mode === 'managed')) {
      const inIts = ({ metadata }: ArgoObject) => metadata.namespace === name;
      for (const [wanted, own] of [
        [ledger, seen.filter(inIts)],
        [sets, seenSets.filter(inIts)],
        [projects, seenProjects],
      ] as const) {
        const takeover = wanted.moved(name, own, knownAt);
        this.findings.push(...takeover.lost);
        this.undone += takeover.undone;
      }
    }
    return seen;
  }

  /**
   * Deletes by hand on the hub that was active: what no other hub has, or what the label keeps to that hub alone:
   * docs/second-hub.md.
   */
  async #cleanUp(former: StagedHub, isItsAlone: (one: ArgoObject) => boolean): Promise<void> {
    for (const { name: agent } of this.#options.stage.agents.filter(({ mode }) => mode === 'managed')) {
      const there = await persist(() => former.cluster.client.list(pairApplications, { namespace: agent }));
      for (const { metadata } of there.filter(isItsAlone)) {
        await this.#deleteByHand(former.cluster, { namespace: agent, name: metadata.name }, agent);
      }
    }
  }

  /**
   * Deletes the copies that the new active hub does not know, as its Events ask for: of Applications that were made on the former one
   * alone, of those that were deleted there before their agent heard of it, and of those that users keep out of the new one.
   */
  async deleteKeptCopies(): Promise<void> {
    const { stage, ledger, sets } = this.#options;
    const generated = generatedBy(sets);
    const isWanted = (agent: string, name: string) => {
      const wanted = ledger.find(agent, name);
      const isGenerated = generated.some((one) => one.agent === agent && one.name === name);
      return isGenerated || (wanted !== undefined && wanted.isKeptOut !== true);
    };
    const found = await persist(() => stage.hub.client.list(events, { namespace }));
    for (const { reason, note = '' } of found) {
      const [, agent = '', name = ''] = /keeps Application (\S+)\/(\S+), which another principal made/.exec(note) ?? [];
      const cluster = stage.agents.find((one) => one.name === agent)?.cluster;
      if (reason === 'ApplicationKept' && cluster !== undefined && !isWanted(agent, name)) {
        await this.#deleteByHand(cluster, { namespace, name }, agent);
      }
    }
  }

  async #deleteByHand({ client }: Cluster, key: { namespace: string; name: string }, agent: string): Promise<void> {
    const found = await persist(() => client.get(pairApplications, key));
    if (found === undefined) {
      return;
    }
    const { uid = '' } = found.metadata;
    this.#options.ledger.meddle(agent, key.name, uid);
    const gone = (error: unknown) => {
      if (!isNotFound(error)) {
        throw error;
      }
    };
    const free = { metadata: { uid, finalizers: null } };
    await untilAdmitted(() => client.mergePatch(pairApplications, key, free)).catch(gone);
    await untilAdmitted(() => client.delete(pairApplications, key, { uid })).catch(gone);
  }

  /** Orders it from one principal after the other, until all that run have done it. */
  async #order(hub: StagedHub, order: 'demote' | 'promote'): Promise<void> {
    let attempts = 0;
    let problem = '';
    const isDone = async () => {
      const states = await Promise.all(hub.principals.map((one) => this.#stateOf(one)));
      // One that has just started does not know yet what its hub is.
      const isFollowing = states.some((state) => state !== undefined && state !== 'active' && state !== 'recovering');
      return order === 'promote' ? states.includes('active') : isFollowing && !states.includes('active');
    };
    await this.#until(
      () => `${hub.name} does not ${order}: ${problem}`,
      async () => {
        if (attempts > 0 && (await isDone())) {
          return true;
        }
        const up = hub.principals.filter(({ part }) => part.isUp);
        if (up.length === 0) {
          return false;
        }
        const { adminAddress, part } = this.#options.random.pick(up);
        const admin = await this.#adminOf(adminAddress, orderMs);
        try {
          // With the Lease force is safe. A principal that was started again does not know what it had received.
          await (order === 'demote' ? admin.demote() : admin.promote(attempts > 0));
          return true;
        } catch (error) {
          problem = `${part.name}: ${(error as Error).message}`;
          this.#options.log(`${order} refused by ${problem}`);
          return false;
        } finally {
          attempts++;
        }
      },
    );
  }

  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look();
      await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Asks the active hub whether the standby has everything; when that was so last. */
  async #look(): Promise<number> {
    const now = performance.now();
    const { active } = this.#options.stage;
    const found = await Promise.all(active.principals.map((one) => this.#statusOf(one)));
    const hasAll = found.some(
      (one) => one?.state === 'active' && one.peerState === 'replicating' && one.lagObjects === 0n,
    );
    if (hasAll && active === this.#options.stage.active) {
      this.#inStepAt = now;
    }
    return this.#inStepAt;
  }

  async #stateOf(principal: StagedPrincipal): Promise<string | undefined> {
    return (await this.#statusOf(principal))?.state;
  }

  async #statusOf({ adminAddress, part }: StagedPrincipal) {
    const admin = await this.#adminOf(adminAddress, statusMs);
    return part.isUp ? await admin.status().catch(() => undefined) : undefined;
  }

  async #adminOf(address: string, timeoutMs: number): Promise<HaAdminClient> {
    const { trust } = this.#options.stage;
    const { certificate: cert, key } = await this.#certificate();
    return haAdminClient({ address, tls: { cert, key, ca: trust.bundle }, timeoutMs });
  }

  /** The operator's, of the authority of now. */
  #certificate(): Promise<KeyCertificate> {
    const { trust } = this.#options.stage;
    if (this.#issued?.bundle !== trust.bundle) {
      this.#issued = { bundle: trust.bundle, certificate: trust.clientCertificate(adminName) };
    }
    return this.#issued.certificate;
  }

  async #until(what: string | (() => string), isSo: () => Promise<boolean>): Promise<void> {
    for (const began = performance.now(); !(await isSo()); ) {
      if (performance.now() - began > patienceMs) {
        throw new Error(`not within ${patienceMs / 1000} s: ${typeof what === 'string' ? what : what()}`);
      }
      await sleep(lookEveryMs);
    }
  }
}

const isKeptOut = ({ metadata }: ArgoObject) => metadata.labels?.[keptOutLabel] === 'true';
