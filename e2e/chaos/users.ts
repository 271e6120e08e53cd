import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNotFound,
  isRetryable,
  type KubeClient,
} from '../../lib/kube/index.ts';
import { type ArgoObject, namespace, pairApplicationSets, pairApplications } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import { createOnce, persist } from '../testbed/index.ts';
import { changedSet, generatedBy, newSet, setName } from './application-sets.ts';
import type { ChaosMember, Ledger, WantedApplication } from './ledger.ts';
import { steady } from './onlooker.ts';

const finalizer = 'resources-finalizer.argocd.argoproj.io';

/** An agent whose cluster the users reach. */
export interface UsedAgent extends ChaosMember {
  readonly cluster: { readonly client: KubeClient };
}

/** What the users reach of a fleet. Applications of an agent are in the hub's namespace of its name. */
export interface UsedFleet {
  readonly hub: { readonly client: KubeClient };
  readonly agents: readonly UsedAgent[];
}

/** How {@link Users} write. */
export interface UsersOptions {
  readonly stage: UsedFleet;
  readonly ledger: Ledger;
  /** Of the ApplicationSets of managed agents; undefined: nobody has any. */
  readonly sets?: Ledger;
  /** Gets what an API server has just accepted. */
  readonly accepted?: (application: WantedApplication) => void;
  /** Gets a line about each edit that was carried out. */
  readonly log?: (line: string) => void;
  readonly random: Random;
  /** Applications of one agent, at most. */
  readonly most: number;
  /** Mean time between two edits of one agent's Applications. */
  readonly everyMs: number;
}

type Edit = readonly [what: string, weight: number, act: (agent: UsedAgent, name: string) => Promise<boolean>];

/**
 * The users of a fleet. They create, edit, delete and replace Applications where these belong, ask the hub for syncs, and
 * meddle with copies and mirrors. The ledger gets what an API server has accepted.
 */
export class Users {
  readonly #options: UsersOptions;
  #number = 0;
  /** Users at work. */
  #busy = 0;
  #isPaused = false;
  /** Called when a pause begins or ends, and when a user has finished. */
  readonly #changed = new EventTarget();

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  /** Every agent gets its first Applications. */
  async begin(perAgent: number): Promise<void> {
    for (const agent of this.#options.stage.agents) {
      await this.#create(agent, steady.name, steady.namespace);
      for (let number = 1; number < perAgent; number++) {
        await this.#create(agent);
      }
      if (agent.mode === 'managed' && this.#options.sets !== undefined) {
        const made = await createOnce(this.#onHub(agent).client, pairApplicationSets, newSet(agent.name));
        this.#wantSet(agent, made, this.#options.sets);
      }
    }
  }

  /** They write until aborted; resolves when every write was answered. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#options.stage.agents.map((agent) => this.#write(agent, signal)));
  }

  /** Nobody writes any more when this resolves. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    while (this.#busy > 0) {
      await once(this.#changed, 'changed');
    }
  }

  /** They go on. */
  resume(): void {
    this.#isPaused = false;
    this.#changed.dispatchEvent(new Event('changed'));
  }

  /** Runs an edit unless users pause; then it waits for the end of the pause, or of the signal. */
  async #atWork<T>(signal: AbortSignal, edit: () => Promise<T>): Promise<T | undefined> {
    while (this.#isPaused && !signal.aborted) {
      await once(this.#changed, 'changed', { signal }).catch(() => undefined);
    }
    if (signal.aborted) {
      return undefined;
    }
    this.#busy++;
    try {
      return await edit();
    } finally {
      this.#busy--;
      this.#changed.dispatchEvent(new Event('changed'));
    }
  }

  async #write(agent: UsedAgent, signal: AbortSignal): Promise<void> {
    const { random, everyMs, ledger } = this.#options;
    const edits: readonly Edit[] = [
      ['create', 4, (at) => this.#create(at)],
      ['edit', 10, (at, name) => this.#edit(at, name)],
      ['sync', 8, (at, name) => this.#sync(at, name)],
      ['delete', 2, (at, name) => this.#delete(at, name)],
      // Deletes it, and makes another one of its name as soon as it is gone.
      ['replace', 2, (at, name) => this.#delete(at, name)],
      ['meddle with a copy', 4, (at, name) => this.#meddle(at, name)],
      ['delete a copy', 1, (at, name) => this.#deleteCopy(at, name)],
      ['change an ApplicationSet', 4, (at) => this.#changeSet(at)],
    ];
    const alsoGenerated: ReadonlySet<string> = new Set(['sync', 'meddle with a copy', 'delete a copy']);
    const lots = edits.flatMap((edit) => Array.from({ length: edit[1] }, () => edit));
    while (!signal.aborted) {
      await sleep(random.integer(0, 2 * everyMs), undefined, { signal }).catch(() => undefined);
      const replaced = await this.#atWork(signal, async () => {
        const names = ledger.of(agent.name).map(({ name }) => name);
        const [what, , act] = random.pick(lots);
        if (what === 'create' && names.length >= this.#options.most) {
          return undefined;
        }
        const name = random.pick(alsoGenerated.has(what) ? [...names, ...this.#generatedFor(agent)] : names);
        if (name === steady.name && /delete|replace/.test(what)) {
          return undefined;
        }
        const uid = ledger.find(agent.name, name)?.uid ?? '';
        if (await act(agent, name)) {
          ledger.count(what);
          const isOfOne = !/create|ApplicationSet/.test(what);
          this.#options.log?.(`${what}: ${agent.name}${isOfOne ? `/${name}` : ''}`);
        }
        return what === 'replace' ? { name, uid } : undefined;
      });
      // While its hub is away, the former one is not gone: others may pause, and turn to the other hub.
      while (
        replaced &&
        (await this.#atWork(signal, () => this.#remake(agent, replaced.name, replaced.uid))) === false
      ) {
        await sleep(100);
      }
    }
  }

  async #create(agent: UsedAgent, name?: string, into?: string): Promise<boolean> {
    const { client } = this.#source(agent);
    this.#want(agent, await createOnce(client, pairApplications, this.#newApplication(agent, name, into)));
    return true;
  }

  #newApplication(agent: UsedAgent, name?: string, into = 'default'): ArgoObject {
    const { random } = this.#options;
    const number = ++this.#number;
    const source = { repoURL: 'https://git.example.com/repo.git', path: `app-${number}`, targetRevision: `v${number}` };
    const at = this.#source(agent);
    const metadata = { name: name ?? `app-${number}`, namespace: at.namespace };
    const isCascading = name !== steady.name && random.chance(0.3);
    return {
      metadata: { ...metadata, ...(isCascading && { finalizers: [finalizer] }) },
      spec: { project: 'default', source, destination: { ...at.destination, namespace: into } },
    };
  }

  async #edit(agent: UsedAgent, name: string): Promise<boolean> {
    const { random } = this.#options;
    const number = ++this.#number;
    const spec = random.chance(0.6)
      ? { source: { targetRevision: `v${number}` } }
      : { info: [{ name: 'edit', value: String(number) }] };
    const at = this.#source(agent);
    // One that is lost shows here as "not found".
    this.#want(agent, await persist(() => at.client.mergePatch(pairApplications, this.#key(at, name), { spec })));
    return true;
  }

  async #delete(agent: UsedAgent, name: string): Promise<boolean> {
    const wanted = this.#get(agent, name);
    const at = this.#source(agent);
    this.#options.ledger.drop(wanted);
    const deletion = () => at.client.delete(pairApplications, this.#key(at, name), { uid: wanted.uid });
    await persist(deletion).catch((error: unknown) => {
      // An attempt whose answer was lost.
      if (!isNotFound(error)) {
        throw error;
      }
    });
    this.#options.ledger.dropped(wanted);
    return true;
  }

  /** Makes an Application of that name as soon as the former one is gone; false: not yet. */
  async #remake(agent: UsedAgent, name: string, formerUid: string): Promise<boolean> {
    if (this.#options.ledger.find(agent.name, name) !== undefined) {
      // A hub has taken over that had not been told of the deletion.
      return true;
    }
    const at = this.#source(agent);
    const { metadata, ...object } = this.#newApplication(agent, name);
    try {
      this.#want(agent, await persist(() => at.client.create(pairApplications, { ...object, metadata })));
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    const found = await persist(() => at.client.get(pairApplications, metadata));
    const isFormer = found?.metadata.uid === formerUid || found?.metadata.deletionTimestamp !== undefined;
    if (found === undefined || isFormer) {
      return false;
    }
    // An attempt whose answer was lost.
    this.#want(agent, found);
    return true;
  }

  /** Asks the hub for a sync as Argo CD's API server does: not while another one runs. */
  async #sync(agent: UsedAgent, name: string): Promise<boolean> {
    const { ledger, stage } = this.#options;
    const { client } = stage.hub;
    const key = { namespace: agent.name, name };
    const found = await persist(() => client.get(pairApplications, key));
    const isRunning = ['Running', 'Terminating'].includes(phaseOf(found) ?? '');
    if (found === undefined || found.operation !== undefined || isRunning || found.metadata.deletionTimestamp) {
      return false;
    }
    const id = `sync-${++this.#number}`;
    const revision = (found.spec.source as { targetRevision: string }).targetRevision;
    const { resourceVersion = '', uid = '' } = found.metadata;
    const operation = { info: [{ name: 'id', value: id }], sync: { revision }, initiatedBy: { username: 'user' } };
    // A mirror may still show the Application that had this name before: then the request is for that one.
    const shownUid = found.metadata.annotations?.['argocd.argoproj.io/source-uid'];
    const isForFormer = agent.mode === 'autonomous' && shownUid !== this.#get(agent, name).uid;
    const asked = { id, agent: agent.name, name, isExcused: isForFormer, mayRunAgain: false };
    try {
      await client.mergePatch(pairApplications, key, {
        metadata: { resourceVersion, uid },
        operation,
        status: { operationState: null },
      });
      ledger.operations.push({ ...asked, isAccepted: true });
      return true;
    } catch (error) {
      if (isConflict(error) || isNotFound(error) || isInvalid(error)) {
        return false;
      }
      if (!isRetryable(error)) {
        throw error;
      }
      ledger.operations.push({ ...asked, isAccepted: false });
      return false;
    }
  }

  async #changeSet(agent: UsedAgent): Promise<boolean> {
    const { sets, random, ledger } = this.#options;
    const set = sets?.find(agent.name, setName);
    if (sets === undefined || set === undefined) {
      return false;
    }
    const { spec, dropped } = changedSet(set, random, ++this.#number);
    if (dropped !== undefined) {
      ledger.excuse(agent.name, dropped);
    }
    const at = this.#onHub(agent);
    const key = this.#key(at, setName);
    this.#wantSet(agent, await persist(() => at.client.mergePatch(pairApplicationSets, key, { spec })), sets);
    return true;
  }

  async #meddle(agent: UsedAgent, name: string): Promise<boolean> {
    const number = ++this.#number;
    const patch = this.#options.random.pick([
      { spec: { source: { path: `meddled-${number}` } } },
      { spec: { info: [{ name: 'meddled', value: String(number) }] } },
      { spec: { destination: { namespace: 'elsewhere' } } },
    ]);
    const at = this.#copy(agent);
    return await onCopy(() => at.client.mergePatch(pairApplications, this.#key(at, name), patch));
  }

  async #deleteCopy(agent: UsedAgent, name: string): Promise<boolean> {
    const at = this.#copy(agent);
    const key = this.#key(at, name);
    const { uid } = (await persist(() => at.client.get(pairApplications, key)))?.metadata ?? {};
    if (uid === undefined) {
      return false;
    }
    this.#options.ledger.meddle(agent.name, name, uid);
    return await onCopy(() => at.client.delete(pairApplications, key, { uid }));
  }

  /** Where an agent's Applications belong. */
  #source(agent: UsedAgent): Place {
    return agent.mode === 'managed'
      ? { ...this.#onHub(agent), destination: { name: agent.name } }
      : { ...onCluster(agent), destination: { server: 'https://kubernetes.default.svc' } };
  }

  #copy(agent: UsedAgent): Place {
    return agent.mode === 'managed' ? onCluster(agent) : this.#onHub(agent);
  }

  #onHub({ name }: UsedAgent): Place {
    return { client: this.#options.stage.hub.client, namespace: name, destination: {} };
  }

  #key({ namespace }: Place, name: string) {
    return { namespace, name };
  }

  #get({ name: agent }: UsedAgent, name: string): WantedApplication {
    const wanted = this.#options.ledger.find(agent, name);
    if (wanted === undefined) {
      throw new Error(`nobody wants ${agent}/${name}`);
    }
    return wanted;
  }

  #want({ name: agent }: UsedAgent, { metadata: { name, uid = '' }, spec }: ArgoObject): void {
    const wanted = { agent, name, uid, spec };
    this.#options.ledger.want(wanted);
    this.#options.accepted?.(wanted);
  }

  #wantSet({ name: agent }: UsedAgent, { metadata: { name, uid = '' }, spec }: ArgoObject, sets: Ledger): void {
    sets.want({ agent, name, uid, spec });
  }

  #generatedFor({ name }: UsedAgent): string[] {
    const { sets } = this.#options;
    return sets === undefined ? [] : generatedBy(sets).flatMap((one) => (one.agent === name ? [one.name] : []));
  }
}

interface Place {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly destination: Readonly<Record<string, string>>;
}

const onCluster = ({ cluster }: UsedAgent): Place => ({ client: cluster.client, namespace, destination: {} });

const phaseOf = (found: ArgoObject | undefined) =>
  (found?.status?.operationState as { phase?: string } | undefined)?.phase;

/** A copy may not be there yet. */
async function onCopy(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    await persist(attempt);
    return true;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) {
      throw error;
    }
    return false;
  }
}
