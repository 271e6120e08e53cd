import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { effort } from '../../lib/base/testing.ts';
import { argoApplications } from '../../lib/bridge/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import { GrpcError, grpcStatus, type PrimaryConnection, targets, WireError } from '../../lib/wire/index.ts';
import { KeptObjects } from './kept-objects.ts';
import { isGoing, isKeptOut, type ReplicatedKind } from './kinds.ts';
import { keysOnBothHubs } from './on-both-hubs.ts';
import { ReplicationSource, type ReplicationSourceOptions } from './replication-source.ts';
import { Standby } from './standby.ts';
import { StandbyWriter, type StandbyWriterOptions } from './standby-writer.ts';
import { ImitatedApiServer, type ImitatedWatch } from './testing/imitated-api-server.ts';
import { silentMetrics } from './testing/silent-metrics.ts';

// Users create, edit, label and delete on the active hub, in any order, while watches are late or end and a standby loses its
// connection. What was deleted must not be on the standby, whatever its label. What is labelled stays there as it was.

const firstSeed = Number(process.env.SEED ?? 1);
const histories = process.env.SEED === undefined ? effort(150, 4_000) : 1;
const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const namespace = 'cluster1';
const names = ['shop', 'web'];
const finalizer = 'resources-finalizer.argocd.argoproj.io';
const keptOut = { [wellKnown.ignoreSyncLabel]: 'true' };

type Application = KubeObject & { readonly spec: { readonly version: number } };

/** What a hub's principal sees of it. */
interface Sight {
  readonly main: ImitatedWatch;
  readonly keptOut: ImitatedWatch;
  readonly kind: ReplicatedKind;
}

function sightOf(server: ImitatedApiServer): Sight {
  const main = server.watch((object) => !isKeptOut(object));
  const apart = server.watch(isKeptOut);
  const kind: ReplicatedKind = {
    name: 'Application',
    target: targets.application,
    type: argoApplications,
    informer: main.informer,
    keptOut: apart.informer,
    includes: (object) => !isKeptOut(object),
    yields: false,
  };
  return { main, keptOut: apart, kind };
}

/** The way between two hubs. What is on it arrives when the test lets it. */
class Way {
  readonly events: (() => void)[] = [];
  readonly acknowledgements: (() => void)[] = [];
  readonly calls: { go(): void; fail(error: Error): void }[] = [];
  isOpen = true;
  source: ReplicationSource | undefined;
  #cut: (() => void) | undefined;

  /** Ends the connection, and all that is on its way. */
  cut(): void {
    this.#cut?.();
  }

  async connect(): Promise<PrimaryConnection> {
    const { source } = this;
    if (!this.isOpen || source === undefined) {
      throw new WireError('unreachable', 'there is no way');
    }
    const connection = {};
    let ended: (() => void) | undefined;
    let isEnded = false;
    const end = () => {
      if (!isEnded) {
        isEnded = true;
        this.events.length = 0;
        this.acknowledgements.length = 0;
        for (const { fail } of this.calls.splice(0)) {
          fail(new WireError('unreachable', 'the connection has ended'));
        }
        ended?.();
      }
    };
    this.#cut = end;
    const demandOpen = () => {
      if (isEnded) {
        throw new WireError('unreachable', 'the connection has ended');
      }
    };
    const passage = async () => {
      demandOpen();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.calls.push({ go: resolve, fail: reject });
      await promise;
    };
    const call = async <T>(ask: () => T | Promise<T>): Promise<T> => {
      await passage();
      const answer = await ask();
      await passage();
      return answer;
    };
    return {
      subscribe: (handlers) => {
        demandOpen();
        const follower = source.subscribe(
          {
            address: 'hub2',
            send: (event) => {
              this.events.push(() => handlers.event(event));
              return true;
            },
            onDrain: nothing,
            judge: nothing,
            end,
            get ended() {
              return isEnded;
            },
          },
          connection,
          'hub2',
        );
        ended = () => {
          follower.closed();
          handlers.ended(new GrpcError(grpcStatus.unavailable, 'the connection has ended'));
        };
        return {
          acknowledge: (sequence) => {
            if (!isEnded) {
              this.acknowledgements.push(() => follower.acknowledged(sequence));
            }
          },
          pause: nothing,
          resume: nothing,
        };
      },
      snapshot: () => call(() => source.snapshot(connection)),
      status: () => call(() => source.status(connection)),
      confirm: (request) => call(() => source.confirm(request, connection)),
      reportRefused: async () => true,
      explain: async (error) => new WireError('unreachable', (error as Error).message),
      destroy: end,
    };
  }
}

/** An active hub, and one that follows it. */
class Pair {
  readonly #random: Random;
  active = new ImitatedApiServer('hub1');
  passive = new ImitatedApiServer('hub2');
  readonly way = new Way();
  standby: Standby | undefined;
  #left: Sight;
  #right: Sight;
  #stops: AbortController[] = [];
  #ended: Promise<unknown> = Promise.resolve();

  constructor(random: Random) {
    this.#random = random;
    this.#left = sightOf(this.active);
    this.#right = sightOf(this.passive);
    this.#lead(undefined);
    this.#follow();
  }

  get watches(): readonly ImitatedWatch[] {
    return [this.#left.main, this.#left.keptOut, this.#right.main];
  }

  #lead(bothHadBefore: ReadonlySet<string> | undefined): void {
    const stop = new AbortController();
    this.#stops.push(stop);
    this.way.source = new ReplicationSource({
      kinds: [this.#left.kind],
      client: this.#clientOf(this.active) as unknown as ReplicationSourceOptions['client'],
      principalUid: 'hub',
      namespace: 'argocd',
      agents: () => [],
      agentOf: () => namespace,
      bothHadBefore,
      firstAckMs: 60_000,
      sent: nothing,
      logger,
      signal: stop.signal,
    });
  }

  /** ConfigMaps are not there. */
  #clientOf(server: ImitatedApiServer) {
    const { client } = server;
    return {
      ...client,
      get: async (type: { readonly kind: string }, ref: { readonly name: string }) =>
        type.kind === 'ConfigMap' ? undefined : await client.get(type, ref),
    };
  }

  #follow(): void {
    const stop = new AbortController();
    this.#stops.push(stop);
    const writer = new StandbyWriter({
      client: this.passive.client as unknown as StandbyWriterOptions['client'],
      namespace: 'argocd',
      isManaged: () => true,
      applicationSetUid: nothing,
      logger,
    });
    const kept = new KeptObjects({ writer, refused: nothing, logger });
    kept.follow(this.#right.kind);
    this.standby = new Standby({
      server: 'hub1:443',
      tls: () => 'plaintext',
      kinds: [this.#right.kind],
      writer,
      kept,
      agents: nothing,
      synced: nothing,
      disconnected: nothing,
      isPromoted: () => false,
      metrics: silentMetrics,
      connect: () => this.way.connect(),
      logger,
    });
    this.#ended = this.standby.run(stop.signal);
  }

  /** Something that is on its way arrives. */
  arrive(): void {
    const { events, acknowledgements, calls } = this.way;
    const ways: (() => void)[] = [
      ...this.watches.filter(({ behind }) => behind > 0).map((watch) => () => watch.deliver()),
      ...(events.length > 0 ? [() => events.shift()?.()] : []),
      ...(acknowledgements.length > 0 ? [() => acknowledgements.shift()?.()] : []),
      ...(calls.length > 0 ? [() => calls.splice(this.#random.integer(0, calls.length - 1), 1)[0]?.go()] : []),
    ];
    if (ways.length > 0) {
      this.#random.pick(ways)();
    }
  }

  get isQuiet(): boolean {
    const { events, acknowledgements, calls, source } = this.way;
    const isArrived = [
      ...this.watches.map(({ behind }) => behind),
      events.length,
      acknowledgements.length,
      calls.length,
    ];
    const lag = (source?.lag.objects ?? 0) + (this.standby?.lag.objects ?? 0);
    return this.standby?.isConnected === true && isArrived.every((left) => left === 0) && lag === 0;
  }

  /** All arrives, until nothing is to be done any more. */
  async settle(): Promise<void> {
    this.way.isOpen = true;
    let quiet = 0;
    for (let round = 0; quiet < 5; round++) {
      if (round > 2_000) {
        const { source, events, acknowledgements, calls } = this.way;
        const left = [
          source?.lag.objects,
          this.standby?.lag.objects,
          events.length,
          acknowledgements.length,
          calls.length,
        ];
        throw new Error(`it does not come to rest: ${left}, ${this.standby?.isConnected}`);
      }
      for (let left = 0; left < 50; left++) {
        this.arrive();
        await vi.advanceTimersByTimeAsync(1);
      }
      await vi.advanceTimersByTimeAsync(1_000);
      quiet = this.isQuiet ? quiet + 1 : 0;
    }
  }

  async end(): Promise<void> {
    for (const stop of this.#stops.splice(0)) {
      stop.abort();
    }
    this.way.cut();
    await vi.advanceTimersByTimeAsync(30_000);
    await this.#ended;
  }

  /** Other principals, in the same roles. */
  async restart(): Promise<void> {
    await this.end();
    [this.#left, this.#right] = [sightOf(this.active), sightOf(this.passive)];
    this.#lead(undefined);
    this.#follow();
  }

  /** The standby becomes active, and what the label keeps on the former hub is deleted there by hand, as the manual says. */
  async turn(): Promise<void> {
    const bothHad = keysOnBothHubs([this.#right.kind]);
    await this.end();
    for (const { metadata } of this.active.list().filter(isKeptOut)) {
      await this.active.client.mergePatch(undefined, metadata, { metadata: { finalizers: null } } as object);
      if (this.active.get(metadata.name) !== undefined) {
        await this.active.client.delete(undefined, metadata);
      }
    }
    [this.active, this.passive] = [this.passive, this.active];
    [this.#left, this.#right] = [sightOf(this.active), sightOf(this.passive)];
    this.#lead(bothHad);
    this.#follow();
  }
}

/** What users do, and what must come of it. */
class Users {
  readonly #random: Random;
  readonly #pair: Pair;
  readonly log: string[] = [];
  /** What each object has been while it had no label, by its UID. */
  readonly #versions = new Map<string, Set<number>>();
  /** UIDs of what the standby had when all was quiet. */
  #had = new Set<string>();
  #number = 0;

  constructor(random: Random, pair: Pair) {
    this.#random = random;
    this.#pair = pair;
  }

  async act(): Promise<void> {
    const { active } = this.#pair;
    const name = this.#random.pick(names);
    const found = active.get(name);
    const ref = { namespace, name };
    const patch = async (what: string, change: object) => {
      this.#say(what, name);
      await active.client.mergePatch(undefined, ref, change as { metadata?: { uid?: string } });
    };
    if (found === undefined) {
      const labels = this.#random.chance(0.25) ? keptOut : {};
      const finalizers = this.#random.chance(0.4) ? [finalizer] : [];
      this.#say(`create${isKeptOut({ metadata: { name, labels } }) ? ' with the label' : ''} ${finalizers}`, name);
      active.create({ metadata: { ...ref, labels, finalizers }, spec: { version: ++this.#number } } as KubeObject);
    } else if (isGoing(found)) {
      await (this.#random.chance(0.7)
        ? patch('let go', { metadata: { finalizers: null } })
        : this.#turnLabel(found, patch));
    } else {
      const what = this.#random.pick(['edit', 'label', 'label', 'delete', 'delete']);
      if (what === 'edit') {
        await patch('edit', { spec: { version: ++this.#number } });
      } else if (what === 'label') {
        await this.#turnLabel(found, patch);
      } else {
        this.#say('delete', name);
        await active.client.delete(undefined, ref);
      }
    }
    this.#note(active.get(name));
  }

  async #turnLabel(found: KubeObject, patch: (what: string, change: object) => Promise<void>): Promise<void> {
    const isIn = !isKeptOut(found);
    await patch(isIn ? 'label' : 'unlabel', {
      metadata: { labels: { [wellKnown.ignoreSyncLabel]: isIn ? 'true' : null } },
    });
  }

  #say(what: string, name: string): void {
    this.log.push(`${what} ${name}`);
  }

  #note(now: KubeObject | undefined): void {
    if (now !== undefined && !isKeptOut(now)) {
      const { uid = '' } = now.metadata;
      this.#versions.set(uid, (this.#versions.get(uid) ?? new Set()).add((now as Application).spec.version));
    }
  }

  /** What is not as it must be when all is quiet. */
  problems(): string[] {
    const { active, passive } = this.#pair;
    const had = new Set<string>();
    const problems = names.flatMap((name) => {
      const [there, copy] = [active.get(name), passive.get(name)] as (Application | undefined)[];
      const shown = `${name} is ${JSON.stringify(copy)} on the standby, and on the active hub ${JSON.stringify(there)}`;
      const isThere = copy !== undefined && !isGoing(copy);
      if (there === undefined || isGoing(there)) {
        const isHeld = there !== undefined && !isKeptOut(there) && !isThere;
        return copy === undefined || isHeld ? [] : [`deleted: ${shown}`];
      }
      const { uid = '' } = there.metadata;
      if (isThere) {
        had.add(uid);
      }
      if (!isKeptOut(there)) {
        return isThere && copy.spec.version === there.spec.version ? [] : [`not in step: ${shown}`];
      }
      if (copy === undefined) {
        return this.#had.has(uid) ? [`kept out, and lost: ${shown}`] : [];
      }
      return isThere && this.#versions.get(uid)?.has(copy.spec.version) ? [] : [`kept out, and another one: ${shown}`];
    });
    this.#had = had;
    return problems;
  }

  /** Another hub is active: its objects are what users see. */
  moved(): void {
    for (const object of this.#pair.active.list()) {
      this.#note(object);
    }
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test.each(Array.from({ length: histories }, (_, at) => firstSeed + at))(
  'what was deleted on the active hub is not on the standby, and what is kept out stays there as it was (SEED=%i)',
  async (seed) => {
    const random = new Random(seed);
    vi.spyOn(Math, 'random').mockImplementation(() => random.next());
    const pair = new Pair(random);
    const users = new Users(random, pair);
    for (let round = 0; round < 6; round++) {
      users.log.push(`round ${round}`);
      const steps = random.integer(5, 60);
      for (let step = 0; step < steps; step++) {
        const dice = random.next();
        if (dice < 0.25) {
          await users.act();
        } else if (dice < 0.29) {
          users.log.push('cut');
          pair.way.cut();
          pair.way.isOpen = random.chance(0.5);
        } else if (dice < 0.32) {
          pair.way.isOpen = true;
        } else if (dice < 0.36) {
          users.log.push('relist');
          random.pick(pair.watches).relist();
        } else if (dice < 0.38) {
          users.log.push('compare again');
          pair.standby?.compareAgain();
        } else if (dice < 0.5) {
          await vi.advanceTimersByTimeAsync(random.integer(1, 3_000));
        } else {
          for (let many = random.integer(1, 6); many > 0; many--) {
            pair.arrive();
            await vi.advanceTimersByTimeAsync(0);
          }
        }
        await vi.advanceTimersByTimeAsync(0);
      }
      await pair.settle();
      expect(users.problems(), users.log.join('\n')).toEqual([]);
      const next = random.pick(['turn', 'restart', 'go on', 'go on', 'go on']);
      if (next !== 'go on') {
        users.log.push(next);
        await (next === 'turn' ? pair.turn() : pair.restart());
        users.moved();
        await pair.settle();
      }
    }
    await pair.end();
  },
);
