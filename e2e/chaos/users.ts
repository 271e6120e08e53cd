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
import { hasResourcesFinalizer } from '../application-controller/index.ts';
import { type ArgoObject, namespace, pairApplicationSets, pairApplications, pairAppProjects } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import { createOnce, persist } from '../testbed/index.ts';
import { isRefused } from './admission.ts';
import { openProject, teamProject, turnedProject } from './app-projects.ts';
import { changedSet, generatedBy, newSet, setName } from './application-sets.ts';
import { type ChaosMember, keptOutLabel, type Ledger, type WantedApplication, wantedOf } from './ledger.ts';
import { steady } from './onlooker.ts';

const finalizer = 'resources-finalizer.argocd.argoproj.io';
/** How long users may not notice that something is held, ms. */
const unnoticedMs = 1_000;

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
  /** Of AppProjects of managed agents, which users lock down and open; undefined: nobody has any. */
  readonly projects?: Ledger;
  /** They also take Applications away in other ways than to delete them. Default: no. */
  readonly isTakingAway?: boolean;
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

/** Resolves with whether it was carried out, or with what is to be made as soon as the former one is gone. */
type Act = (agent: UsedAgent, name: string) => Promise<boolean | Successor>;
type Edit = readonly [what: string, weight: number, act: Act];

/** An Application that takes the place of another one. */
interface Successor {
  readonly agent: UsedAgent;
  readonly object: ArgoObject;
  readonly formerUid: string;
}

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
      if (agent.mode === 'managed' && this.#options.projects !== undefined) {
        const metadata = { name: teamProject(agent.name), namespace };
        const project = { metadata, spec: openProject(agent.name) };
        this.#wantAs(
          this.#options.projects,
          agent,
          await createOnce(this.#onHub(agent).client, pairAppProjects, project),
        );
      }
      await this.#create(agent, steady.name, steady.namespace);
      for (let number = 1; number < perAgent; number++) {
        await this.#create(agent);
      }
      if (agent.mode === 'managed' && this.#options.sets !== undefined) {
        const made = await createOnce(this.#onHub(agent).client, pairApplicationSets, newSet(agent.name));
        this.#wantAs(this.#options.sets, agent, made);
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

  /** They open every AppProject that is locked down, so that all goes to the clusters that was withheld. */
  async openProjects(): Promise<void> {
    for (const agent of this.#options.stage.agents) {
      await this.#specifyProject(agent, () => openProject(agent.name));
    }
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
      ['replace', 2, (at, name) => this.#replace(at, name)],
      ['meddle with a copy', 4, (at, name) => this.#meddle(at, name)],
      ['delete a copy', 1, (at, name) => this.#deleteCopy(at, name)],
      ['change an ApplicationSet', 4, (at) => this.#changeSet(at)],
      ...(this.#options.isTakingAway === true ? this.#takingAway() : []),
    ];
    const alsoGenerated: ReadonlySet<string> = new Set(['sync', 'meddle with a copy', 'delete a copy']);
    const lots = edits.flatMap((edit) => Array.from({ length: edit[1] }, () => edit));
    while (!signal.aborted) {
      await sleep(random.integer(0, 2 * everyMs), undefined, { signal }).catch(() => undefined);
      const successor = await this.#atWork(signal, async () => {
        const names = ledger.of(agent.name).map(({ name }) => name);
        const [what, , act] = random.pick(lots);
        if (what === 'create' && names.length >= this.#options.most) {
          return undefined;
        }
        const name = random.pick(alsoGenerated.has(what) ? [...names, ...this.#generatedFor(agent)] : names);
        if (name === steady.name && /delete|replace|move|keep/.test(what)) {
          return undefined;
        }
        const done = await act(agent, name);
        if (done !== false) {
          ledger.count(what);
          const isOfOne = !/create|ApplicationSet|AppProject/.test(what);
          this.#options.log?.(`${what}: ${agent.name}${isOfOne ? `/${name}` : ''}`);
        }
        return typeof done === 'object' ? done : undefined;
      });
      // While its hub is away, the former one is not gone: others may pause, and turn to the other hub.
      while (successor && (await this.#atWork(signal, () => this.#make(successor))) === false) {
        await sleep(100);
      }
    }
  }

  /** What takes an Application away from its agent in other ways than `delete` does, or what its cluster needs for it. */
  #takingAway(): readonly Edit[] {
    return [
      ['delete without cascading', 2, (at, name) => this.#deleteAlone(at, name)],
      ['move to another agent', 2, (at, name) => this.#move(at, name)],
      ['keep out or take in', 3, (at, name) => this.#keepOut(at, name)],
      ['lock or open an AppProject', 2, (at) => this.#turnProject(at)],
    ];
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
    const hasTeam = agent.mode === 'managed' && this.#options.projects !== undefined && name !== steady.name;
    const project = hasTeam && random.chance(0.5) ? teamProject(agent.name) : 'default';
    return {
      metadata: { ...metadata, ...(isCascading && { finalizers: [finalizer] }) },
      spec: { project, source, destination: { ...at.destination, namespace: into } },
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
    if (wanted.isKeptOut === true && wanted.cascades === true) {
      await this.#letGo(at, wanted);
    }
    return true;
  }

  /** What the label keeps out has a finalizer, and nobody else lets it go. Users notice that a little later. */
  async #letGo(at: Place, { name, uid }: WantedApplication): Promise<void> {
    await sleep(this.#options.random.integer(0, unnoticedMs));
    const patch = { metadata: { uid, finalizers: null } };
    await persist(() => at.client.mergePatch(pairApplications, this.#key(at, name), patch)).catch((error: unknown) => {
      // An attempt whose answer was lost.
      if (!isNotFound(error) && !isInvalid(error)) {
        throw error;
      }
    });
  }

  async #replace(agent: UsedAgent, name: string): Promise<Successor> {
    const formerUid = this.#get(agent, name).uid;
    await this.#delete(agent, name);
    return { agent, object: this.#newApplication(agent, name), formerUid };
  }

  /** As `argocd app delete --cascade=false` does it: the workload stays. */
  async #deleteAlone(agent: UsedAgent, name: string): Promise<boolean> {
    const at = this.#source(agent);
    const key = this.#key(at, name);
    const takeOff = async () => {
      const { resourceVersion, uid, finalizers = [] } = (await at.client.get(pairApplications, key))?.metadata ?? {};
      const kept = finalizers.filter((one) => !hasResourcesFinalizer({ metadata: { finalizers: [one] } }));
      const metadata = { resourceVersion, uid, finalizers: kept };
      return await at.client.mergePatch(pairApplications, key, { metadata });
    };
    this.#want(agent, await persist(takeOff));
    return await this.#delete(agent, name);
  }

  /** To another agent, where the same Application is made. Whether the workload goes here is as it was, or it stays. */
  async #move(agent: UsedAgent, name: string): Promise<Successor | false> {
    const { random, ledger, stage, most } = this.#options;
    const isFree = (other: UsedAgent) =>
      other.mode === 'managed' && ledger.of(other.name).length < most && ledger.find(other.name, name) === undefined;
    const others = stage.agents.filter((other) => other !== agent && isFree(other));
    if (agent.mode !== 'managed' || others.length === 0) {
      return false;
    }
    const other = random.pick(others);
    const { spec } = this.#get(agent, name);
    const { metadata, spec: own } = this.#newApplication(other, name);
    const { namespace: into } = spec.destination as { namespace: string };
    const moved = { ...spec, project: own.project, destination: { name: other.name, namespace: into } };
    await (random.chance(0.5) ? this.#deleteAlone(agent, name) : this.#delete(agent, name));
    return { agent: other, object: { metadata, spec: moved }, formerUid: '' };
  }

  /** Takes an Application out of synchronisation, or into it again. */
  async #keepOut(agent: UsedAgent, name: string): Promise<boolean> {
    if (agent.mode !== 'managed') {
      return false;
    }
    const wanted = this.#get(agent, name);
    const isIn = wanted.isKeptOut !== true;
    if (isIn) {
      this.#options.ledger.keepOut(wanted);
    }
    const at = this.#source(agent);
    const patch = { metadata: { labels: { [keptOutLabel]: isIn ? 'true' : null } } };
    this.#want(agent, await persist(() => at.client.mergePatch(pairApplications, this.#key(at, name), patch)));
    return true;
  }

  #turnProject(agent: UsedAgent): Promise<boolean> {
    return this.#specifyProject(agent, (project) => turnedProject(project, this.#options.random));
  }

  async #specifyProject(agent: UsedAgent, specify: (now: WantedApplication) => ArgoObject['spec']): Promise<boolean> {
    const { projects } = this.#options;
    const project = projects?.find(agent.name, teamProject(agent.name));
    if (projects === undefined || project === undefined) {
      return false;
    }
    const { client } = this.#onHub(agent);
    const spec = specify(project);
    const key = { namespace, name: project.name };
    this.#wantAs(projects, agent, await persist(() => client.mergePatch(pairAppProjects, key, { spec })));
    return true;
  }

  /** Makes an Application as soon as the former one of its name is gone; false: not yet. */
  async #make({ agent, object, formerUid }: Successor): Promise<boolean> {
    if (this.#options.ledger.find(agent.name, object.metadata.name) !== undefined) {
      // A hub has taken over that had not been told of the deletion.
      return true;
    }
    const at = this.#source(agent);
    try {
      this.#want(agent, await persist(() => at.client.create(pairApplications, object)));
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
    const found = await persist(() => at.client.get(pairApplications, object.metadata));
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
    if (ledger.find(agent.name, name)?.isKeptOut === true) {
      return false;
    }
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
    this.#wantAs(sets, agent, await persist(() => at.client.mergePatch(pairApplicationSets, key, { spec })));
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

  #want({ name: agent }: UsedAgent, object: ArgoObject): void {
    const wanted = wantedOf(agent, object);
    this.#options.ledger.want(wanted);
    this.#options.accepted?.(wanted);
  }

  #wantAs(ledger: Ledger, { name: agent }: UsedAgent, object: ArgoObject): void {
    ledger.want(wantedOf(agent, object));
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

/** A copy may not be there yet, or refused to be changed. */
async function onCopy(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    await persist(attempt);
    return true;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error) && !isRefused(error)) {
      throw error;
    }
    return false;
  }
}
