import { setTimeout as delay } from 'node:timers/promises';
import { isForbidden, type KubeClient, type KubeObject, keyOf, type ResourceType } from '../../lib/kube/index.ts';
import { FatalError, printableLines } from '../../lib/ops/index.ts';

/** What `adopt` and `release` work on. */
export interface TakeoverScope {
  readonly client: KubeClient;
  /** The namespace of Argo CD, the principal and the GitOpsClusters on the hub. */
  readonly namespace: string;
  /** The Helm release that gets the objects that both charts have. */
  readonly release: HelmRelease;
  readonly dryRun: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly stdout: (text: string) => void;
}

/** A Helm release by name. */
export interface HelmRelease {
  readonly name: string;
  readonly namespace: string;
}

/** Says each change and makes it; a dry run only says it. */
export class Steps {
  readonly #scope: TakeoverScope;
  #count = 0;

  constructor(scope: TakeoverScope) {
    this.#scope = scope;
  }

  /** Number of changes so far. */
  get count(): number {
    return this.#count;
  }

  /**
   * Changes an object by a merge patch.
   * @throws FatalError when the user has no right to it
   */
  async patch(type: ResourceType, object: KubeObject, what: string, patch: object): Promise<void> {
    const { client, signal } = this.#scope;
    await this.#take(`${type.kind} ${keyOf(object)}: ${what}`, () =>
      client.mergePatch(type, object.metadata, patch, { signal }),
    );
  }

  /**
   * Deletes an object, unless it has been made anew meanwhile.
   * @throws FatalError when the user has no right to it
   */
  async delete(type: ResourceType, object: KubeObject, what = 'deleted'): Promise<void> {
    const { client, signal } = this.#scope;
    const { uid } = object.metadata;
    await this.#take(`${type.kind} ${keyOf(object)}: ${what}`, () =>
      client.delete(type, object.metadata, { uid, signal }),
    );
  }

  async #take(what: string, change: () => Promise<unknown>): Promise<void> {
    const { dryRun, stdout } = this.#scope;
    this.#count += 1;
    stdout(printableLines(`${what}${dryRun ? ' (dry run)' : ''}\n`));
    if (dryRun) {
      return;
    }
    try {
      await change();
    } catch (error) {
      throw isForbidden(error) ? forbiddenError(error as Error) : error;
    }
  }

  /**
   * Waits until `obstacle` returns nothing, saying each new obstacle. A dry run does not wait.
   * @throws FatalError with the last obstacle after the timeout
   */
  async wait(obstacle: () => Promise<string | undefined>): Promise<void> {
    const { dryRun, timeoutMs, signal, stdout } = this.#scope;
    const deadline = Date.now() + timeoutMs;
    let said = '';
    while (!dryRun) {
      const message = await obstacle();
      if (message === undefined) {
        return;
      }
      if (message !== said) {
        stdout(printableLines(`waiting: ${message}\n`));
      }
      said = message;
      if (Date.now() > deadline) {
        throw new FatalError(`${message}. Solve this and run the command again: it goes on where it has stopped`);
      }
      await delay(500, undefined, { signal });
    }
  }
}

/** The error of a request that the user has no right to. */
export function forbiddenError(error: Error): FatalError {
  return new FatalError(
    `${error.message}. Run the command with the rights that helm install needs on the hub (cluster-admin); it goes on where it has stopped`,
    { cause: error },
  );
}
