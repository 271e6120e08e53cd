import { expect } from 'vitest';
import type { AgentMode } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import type { BusyController } from '../chaos/index.ts';
import { type ArgoObject, application, namespace, pairApplications } from '../pair/index.ts';

/** Where the Applications of an agent are: in Argo CD's namespace, unless it is said. */
export interface ApplicationPlaces {
  readonly mode: AgentMode;
  readonly hub: KubeClient;
  /** The namespace on the hub. */
  readonly onHub: string;
  readonly cluster: KubeClient;
  readonly destination: object;
  readonly controller: BusyController;
}

const patient = { timeoutMs: 90_000 };
const lasting = 'lasting';

/** What users do with Applications of one agent, end to end, and an Application that lasts through all of it. */
export class ApplicationCheck {
  readonly #at: ApplicationPlaces;
  readonly #owner: { readonly client: KubeClient; readonly namespace: string };
  #uids: readonly (string | undefined)[] = [];

  constructor(at: ApplicationPlaces) {
    this.#at = at;
    this.#owner = at.mode === 'managed' ? { client: at.hub, namespace: at.onHub } : { client: at.cluster, namespace };
  }

  /** Makes the Application that lasts. */
  async begin(): Promise<void> {
    await this.#create(lasting);
    this.#uids = await this.#uidsOf(lasting);
  }

  /**
   * An Application comes, it and the lasting one are edited, their status comes back, a sync and a refresh are carried out,
   * it goes, and the lasting one is the same as before, on both sides.
   * @param mark another one for each call
   */
  async check(mark: string): Promise<void> {
    const name = `app-${mark}`;
    await this.#create(name);
    for (const each of [name, lasting]) {
      await this.#edit(each, mark);
    }
    await this.#sync(name, mark);
    await this.#refresh(name);
    await this.#owner.client.delete(pairApplications, { namespace: this.#owner.namespace, name });
    await until('it is gone', async () => (await this.#both(name)).every((one) => one === undefined), patient);
    expect(await this.#uidsOf(lasting)).toEqual(this.#uids);
  }

  async #create(name: string): Promise<void> {
    const { client, namespace } = this.#owner;
    const { destination } = this.#at;
    await client.create(pairApplications, application({ name, namespace, spec: { destination } }));
    await until('it is on both sides', async () => (await this.#both(name)).every(Boolean), patient);
  }

  async #edit(name: string, path: string): Promise<void> {
    const { client, namespace } = this.#owner;
    await client.mergePatch(pairApplications, { namespace, name }, { spec: { source: { path } } });
    await until(
      'the edit',
      async () => (await this.#both(name)).every((one) => sourcePath(one?.spec) === path),
      patient,
    );
    await until(
      'the status on the hub',
      async () => {
        const [onHub, onCluster] = (await this.#both(name)).map((one) => one?.status?.sync as SyncState | undefined);
        expect(sourcePath(onCluster?.comparedTo)).toBe(path);
        expect(sourcePath(onHub?.comparedTo)).toBe(path);
        expect(onHub?.status).toBe(onCluster?.status);
        return true;
      },
      patient,
    );
  }

  async #sync(name: string, id: string): Promise<void> {
    const { hub, onHub, controller } = this.#at;
    const operation = { info: [{ name: 'id', value: id }], sync: { revision: 'HEAD' } };
    await hub.mergePatch(pairApplications, { namespace: onHub, name }, { operation });
    await until(
      'the sync has run',
      async () => {
        for (const one of await this.#both(name)) {
          expect(one?.status?.operationState).toMatchObject({ phase: 'Succeeded', operation });
          expect(one?.operation).toBeUndefined();
        }
        return true;
      },
      patient,
    );
    expect(controller.runs.filter((run) => run.id === id)).toHaveLength(1);
  }

  async #refresh(name: string): Promise<void> {
    const { hub, onHub, controller } = this.#at;
    const key = 'argocd.argoproj.io/refresh';
    const before = controller.refreshesOf(name);
    await hub.mergePatch(
      pairApplications,
      { namespace: onHub, name },
      { metadata: { annotations: { [key]: 'hard' } } },
    );
    await until('the refresh', () => controller.refreshesOf(name) > before, patient);
    const isAsked = (one: ArgoObject | undefined) => one?.metadata.annotations?.[key] !== undefined;
    await until('its end', async () => !(await this.#both(name)).some(isAsked), patient);
  }

  async #both(name: string): Promise<readonly [ArgoObject | undefined, ArgoObject | undefined]> {
    const { hub, onHub, cluster } = this.#at;
    return await Promise.all([
      hub.get(pairApplications, { namespace: onHub, name }),
      cluster.get(pairApplications, { namespace, name }),
    ]);
  }

  async #uidsOf(name: string): Promise<(string | undefined)[]> {
    return (await this.#both(name)).map((one) => one?.metadata.uid);
  }
}

interface SyncState {
  readonly status?: string;
  readonly comparedTo?: { readonly source?: object };
}

const sourcePath = (at: { readonly source?: unknown } | undefined) =>
  (at?.source as { path?: string } | undefined)?.path;
