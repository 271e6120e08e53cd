import { PerformanceObserver } from 'node:perf_hooks';
import {
  type Application,
  HubApplications,
  HubSync,
  type Message,
  type PeerConnection,
} from '../../lib/argocd/index.ts';
import { TextPool } from '../../lib/kube/index.ts';
import { type ObjectRef, processRuntime, type Store, type StoreChange } from '../../lib/sync/index.ts';
import { agentNames } from '../load/generator.ts';
import { applicationName } from '../scale/hub.ts';
import { realisticApplication } from '../scale/realistic.ts';

/** A fleet for {@link runEngine}. */
export interface EngineFleet {
  readonly agents: number;
  readonly perAgent: number;
  /** Applications that are changed. */
  readonly changes: number;
}

/** What a fleet costs the engine of one principal. Bytes are of the heap that is alive; seconds are of the processor. */
export interface EngineFigures extends EngineFleet {
  /** The Applications themselves. */
  readonly objectBytes: number;
  /** What the engine has beside them when all agents are connected and in sync. */
  readonly engineBytes: number;
  /** Until all agents, which have nothing, have acknowledged everything. */
  readonly connectSeconds: number;
  /** All changes, from the watch event to the acknowledgement; and how much of that was the garbage collector. */
  readonly changeSeconds: number;
  readonly collectorSeconds: number;
  /** One agent is away and comes back while all others are there. */
  readonly returnSeconds: number;
}

/**
 * Runs the principal's engine, as it is, on Applications in memory, with agents that acknowledge at once: what a fleet costs that
 * no machine here can hold with its API server. What it leaves out is parsing, TLS and the network; those are measured on real ones.
 */
export async function runEngine({ agents, perAgent, changes }: EngineFleet): Promise<EngineFigures> {
  const names = agentNames(agents);
  const store = new MemoryStore();
  const atStart = liveBytes();
  for (const agent of names) {
    for (let index = 0; index < perAgent; index++) {
      store.put(store.textOf(agent, index, 'release-2026.11'));
    }
  }
  const filled = liveBytes();

  const quiet = () => undefined;
  const runtime = processRuntime({ debug: quiet, info: quiet, warn: quiet, error: quiet });
  const applications = new HubApplications({
    applications: store,
    principalUid: 'principal',
    agentOf: ({ metadata }) => metadata.namespace,
    runtime,
  });
  const sync = new HubSync({ managed: [applications], runtime });
  const stop = new AbortController();
  sync.start(stop.signal);
  const fleet = new AcknowledgingAgents(sync);
  const connectSeconds = await processorSeconds(async () => {
    for (const agent of names) {
      fleet.connect(agent);
    }
    await fleet.received(agents * perAgent);
  });
  const served = liveBytes();

  // Each of another Application, spread over all agents.
  const events = Array.from({ length: changes }, (_, change) =>
    store.textOf(names[change % agents] ?? '', Math.floor(change / agents) % perAgent, `change-${change}`),
  );
  const collector = collectorTime();
  const changeSeconds = await processorSeconds(async () => {
    const before = fleet.count;
    for (const [change, text] of events.entries()) {
      store.put(text);
      if (change % 100 === 0) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    await fleet.received(before + changes);
  });
  const collectorSeconds = await collector.end();
  const [first = ''] = names;
  const returnSeconds = await processorSeconds(async () => {
    const before = fleet.count;
    fleet.disconnect(first);
    // As when another principal has served it in the meantime.
    sync.releaseAgent(first);
    fleet.connect(first);
    await fleet.received(before + perAgent);
  });
  stop.abort();
  return {
    agents,
    perAgent,
    changes,
    objectBytes: filled - atStart,
    engineBytes: served - filled,
    connectSeconds,
    changeSeconds,
    collectorSeconds,
    returnSeconds,
  };
}

/** The hub's Applications, as the principal's cache has them. Nothing writes to it: agents report nothing. */
class MemoryStore implements Store<Application> {
  readonly #objects = new Map<string, Application>();
  readonly #listeners = new Set<(change: StoreChange<Application>) => void>();
  readonly #texts = new TextPool();
  #version = 0;

  /** An Application as an API server sends it. */
  textOf(namespace: string, index: number, revision: string): string {
    const made = realisticApplication(namespace, applicationName(index));
    const known = this.#objects.get(`${namespace}/${made.metadata.name}`);
    const uid = known?.metadata.uid ?? `uid-${namespace}-${index}`;
    const source = { ...(made.spec.source as object), targetRevision: revision };
    return JSON.stringify({ ...made, metadata: { ...made.metadata, uid }, spec: { ...made.spec, source } });
  }

  /** Takes an Application, which is new or has changed. */
  put(text: string): void {
    const now = this.#texts.share(JSON.parse(text) as Application & { metadata: { resourceVersion?: string } });
    now.metadata.resourceVersion = String(++this.#version);
    const key = `${now.metadata.namespace}/${now.metadata.name}`;
    const old = this.#objects.get(key);
    this.#objects.set(key, now);
    for (const listener of this.#listeners) {
      listener({ old, now });
    }
  }

  subscribe(listener: (change: StoreChange<Application>) => void): () => void {
    for (const now of this.#objects.values()) {
      listener({ old: undefined, now });
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async read({ namespace, name }: ObjectRef): Promise<Application | undefined> {
    return this.#objects.get(`${namespace}/${name}`);
  }

  create(): Promise<Application> {
    return refuse();
  }

  patch(): Promise<Application> {
    return refuse();
  }

  delete(): Promise<void> {
    return refuse();
  }
}

/** Agents that take all that they are sent, and acknowledge it in the next turn. */
class AcknowledgingAgents {
  readonly #sync: HubSync;
  readonly #connections = new Map<string, PeerConnection>();
  #said = 0;
  #waiting: { readonly count: number; readonly go: () => void } | undefined;
  /** Applications that were sent and acknowledged so far. */
  count = 0;

  constructor(sync: HubSync) {
    this.#sync = sync;
  }

  connect(agent: string): void {
    const connection: PeerConnection = {
      send: (message) => {
        setImmediate(() => this.#acknowledge(agent, message));
        return true;
      },
      acknowledge: () => undefined,
    };
    this.#connections.set(agent, connection);
    this.#sync.connected(agent, 'managed', connection);
  }

  disconnect(agent: string): void {
    const connection = this.#connections.get(agent);
    if (connection !== undefined) {
      this.#sync.disconnected(agent, connection);
    }
  }

  /** Resolves when so many Applications have been sent and acknowledged. */
  async received(count: number): Promise<void> {
    if (this.count < count) {
      await new Promise<void>((go) => {
        this.#waiting = { count, go };
      });
    }
  }

  #acknowledge(agent: string, message: Message): void {
    this.#sync.acknowledged(agent, message);
    if (message.target === 'resourceResync') {
      // It has nothing, and says so.
      const id = `${agent}-${++this.#said}`;
      const payload = { checksum: null, complete: true };
      this.#sync.receive(agent, {
        target: 'resourceResync',
        type: 'request-synced-resource-list',
        payload,
        resourceId: id,
        eventId: id,
      });
      return;
    }
    this.count++;
    if (this.#waiting !== undefined && this.count >= this.#waiting.count) {
      this.#waiting.go();
      this.#waiting = undefined;
    }
  }
}

function refuse(): Promise<never> {
  return Promise.reject(new Error('this fleet takes no writes'));
}

/** Bytes of the heap that are alive. */
function liveBytes(): number {
  if (gc === undefined) {
    throw new Error('run node with --expose-gc');
  }
  gc();
  return process.memoryUsage().heapUsed;
}

/** Counts what the garbage collector takes from now on, until it is ended. */
function collectorTime(): { end(): Promise<number> } {
  let milliseconds = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      milliseconds += duration;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return {
    async end() {
      // What it has to report comes in the next turn.
      await new Promise((resolve) => setImmediate(resolve));
      observer.disconnect();
      return milliseconds / 1000;
    },
  };
}

async function processorSeconds(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
