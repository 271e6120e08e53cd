import { join } from 'node:path';
import { buildCommand, type Runner } from '../image/index.ts';
import { type CommandLine, type KindEngine, kindCommands, parseHubAccess } from './kind-commands.ts';

/** What {@link KindMachine} works with. */
export interface KindMachineOptions {
  readonly engine: KindEngine;
  /** Runs the commands; for tests, something else that does. */
  readonly runner: Runner;
  /** For kubeconfigs and the saved image. */
  readonly folder: string;
  /** For logs. */
  readonly logs: string;
  /** Where the Dockerfile is. */
  readonly project: string;
  /** What the image is called. */
  readonly image: string;
  readonly signal?: AbortSignal | undefined;
}

/** Clusters of kind on this machine, with OCM on them by clusteradm: everything that is done by commands. */
export class KindMachine {
  readonly #options: KindMachineOptions;
  readonly #clusters: string[] = [];

  constructor(options: KindMachineOptions) {
    this.#options = options;
  }

  /** Builds the image, and keeps it in a file for the clusters. */
  async build(): Promise<void> {
    const { engine, image, project } = this.#options;
    const request = { engine, tag: image, revision: 'kind', date: new Date().toISOString(), folder: project };
    const { command, args } = buildCommand(request);
    await this.#run([command, ...args]);
    await this.#run(kindCommands.save(engine, image, this.#archive));
  }

  /**
   * Creates a cluster that has the image.
   * @returns its kubeconfig
   */
  async create(name: string): Promise<string> {
    const { engine, folder } = this.#options;
    const kubeconfig = join(folder, `${name}.kubeconfig`);
    // One that failed halfway is to be removed as well.
    this.#clusters.push(name);
    await this.#run(kindCommands.create(engine, name, kubeconfig));
    await this.#run(kindCommands.load(engine, this.#archive, name));
    return kubeconfig;
  }

  /** Makes a cluster OCM's hub. */
  async initHub(kubeconfig: string): Promise<void> {
    await this.#run(kindCommands.initHub(kubeconfig));
  }

  /** Makes a cluster a managed one, by the kubeconfigs of both. */
  async join(name: string, kubeconfig: string, hub: string): Promise<void> {
    const access = parseHubAccess(await this.#run(kindCommands.token(hub)));
    await this.#run(kindCommands.join(name, kubeconfig, access));
    await this.#run(kindCommands.accept(name, hub));
  }

  /**
   * The address at which the clusters reach this machine; there is one once there is a cluster.
   * @throws Error when kind's network has none of IPv4
   */
  async address(): Promise<string> {
    const text = await this.#run(kindCommands.gateways(this.#options.engine));
    const found = text.split(/\s+/).find((one) => /^\d+\.\d+\.\d+\.\d+$/.test(one));
    if (found === undefined) {
      throw new Error(`the network of kind has no gateway of IPv4: ${text.trim() || 'none'}`);
    }
    return found;
  }

  /**
   * Writes the logs of all nodes into the folder for them.
   * @returns the folder
   */
  async logs(): Promise<string> {
    const { engine, logs } = this.#options;
    for (const name of this.#clusters) {
      await this.#run(kindCommands.logs(engine, name, join(logs, name)));
    }
    return logs;
  }

  /**
   * Deletes every cluster, whatever becomes of the others.
   * @throws AggregateError that names those that are left
   */
  async delete(): Promise<void> {
    const errors: Error[] = [];
    for (const name of this.#clusters.splice(0).reverse()) {
      const [command, ...args] = kindCommands.delete(this.#options.engine, name);
      // Also when everything else was called off.
      await this.#options
        .runner(command, args)
        .catch((error: Error) => errors.push(new Error(`cluster ${name}: ${error.message}`, { cause: error })));
    }
    if (errors.length > 0) {
      throw new AggregateError(errors, errors.map(({ message }) => message).join('; '));
    }
  }

  get #archive(): string {
    return join(this.#options.folder, 'image.tar');
  }

  async #run([command, ...args]: CommandLine): Promise<string> {
    this.#options.signal?.throwIfAborted();
    return await this.#options.runner(command, args);
  }
}
