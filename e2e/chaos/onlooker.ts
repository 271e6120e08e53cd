import { setTimeout as sleep } from 'node:timers/promises';
import { configMaps, namespaces } from '../../lib/kube/index.ts';
import { ProxyClient } from '../live/index.ts';
import type { Random } from '../random/index.ts';
import type { ChaosStage, StagedAgent, StagedPrincipal } from './stage.ts';

/** The Application that every agent has throughout, and the namespace that it deploys into. */
export const steady = { name: 'steady', namespace: 'steady' } as const;

const path = `/api/v1/namespaces/${steady.namespace}/configmaps/who`;
const timeoutMs = 10_000;

/** A user of Argo CD's UI, who looks at an object of one cluster or another through any principal. */
export class Onlooker {
  /** Of the requests under load. */
  answered = 0;
  /** Not answered: principals or agents were away. */
  failed = 0;
  /** Answers for another cluster than the one that was asked for, in words. */
  readonly wrong: string[] = [];
  readonly #stage: ChaosStage;
  readonly #random: Random;

  constructor(stage: ChaosStage, random: Random) {
    this.#stage = stage;
    this.#random = random;
  }

  /** Makes the object that is looked at. */
  async prepare(): Promise<void> {
    await Promise.all(
      this.#stage.agents.map(async ({ name, cluster: { client } }) => {
        await client.create(namespaces, { metadata: { name: steady.namespace } });
        await client.create(configMaps, {
          metadata: {
            name: 'who',
            namespace: steady.namespace,
            annotations: { 'argocd.argoproj.io/tracking-id': `${steady.name}:/ConfigMap:${steady.namespace}/who` },
          },
          data: { cluster: name },
        });
      }),
    );
  }

  /** Looks so many times a second until aborted. */
  async run(perSecond: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#random.integer(0, 2_000 / perSecond), undefined, { signal }).catch(() => undefined);
      const up = this.#stage.active.principals.filter(({ part }) => part.isUp);
      if (up.length > 0 && !signal.aborted) {
        const failure = await this.#ask(this.#random.pick(up), this.#random.pick(this.#stage.agents));
        if (failure === undefined) {
          this.answered++;
        } else {
          this.failed++;
        }
      }
    }
  }

  /** Asks every principal of the active hub for every cluster; what did not answer, in words. */
  async askAll(): Promise<string[]> {
    const asked = this.#stage.active.principals.flatMap((principal) =>
      this.#stage.agents.map(async (agent) => {
        const failure = await this.#ask(principal, agent);
        return failure === undefined ? [] : [`${principal.part.name} for ${agent.name}: ${failure}`];
      }),
    );
    return (await Promise.all(asked)).flat();
  }

  async #ask({ proxyPort }: StagedPrincipal, { name }: StagedAgent): Promise<string | undefined> {
    try {
      const certificate = await this.#stage.trust.clientCertificate(name);
      const client = new ProxyClient(proxyPort, { certificate: this.#stage.trust.bundle, key: '' }, certificate);
      const { status, text } = await client.send('GET', path, { signal: AbortSignal.timeout(timeoutMs) });
      if (status !== 200) {
        return `${status} ${text.slice(0, 200)}`;
      }
      const { data } = JSON.parse(text) as { data: { cluster: string } };
      if (data.cluster !== name) {
        this.wrong.push(`${name} was asked and ${data.cluster} answered`);
      }
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }
}
