import { z } from 'zod';
import { wellKnown } from '../../lib/base/index.ts';
import {
  configMaps,
  isAlreadyExists,
  isConflict,
  type KubeClient,
  keyOf,
  type ObjectKey,
} from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';

const recordSchema = z.object({
  namespace: z.string(),
  name: z.string(),
  /** `moving`: on its way to the agent; `moved`: the agent has it; `returning`: on its way back. */
  phase: z.enum(['moving', 'moved', 'returning']),
  /** Where it deployed to before the move. */
  destination: z.object({ name: z.string().optional(), server: z.string().optional() }),
  /** What it gets back after a move: automated sync, finalizers, the user's own skip-reconcile. */
  automated: z.unknown().optional(),
  finalizers: z.array(z.string()),
  skipReconcile: z.string().optional(),
  /** Before the present move. */
  before: z.object({ sync: z.string(), health: z.string(), uids: z.record(z.string(), z.string()) }).optional(),
});

/** What must be known of an Application to go on after an interruption, and to bring it back. */
export type MoveRecord = z.infer<typeof recordSchema>;

const fieldManager = 'argocd-agent-migrate';

/** The records of one agent's cluster, in a ConfigMap on the hub. */
export class MoveRecords {
  readonly #hub: KubeClient;
  readonly #key: Required<ObjectKey> & { readonly namespace: string };
  readonly #agent: string;
  readonly #signal: AbortSignal;
  #records = new Map<string, MoveRecord>();
  #resourceVersion: string | undefined;

  constructor(hub: KubeClient, options: { namespace: string; agent: string; signal: AbortSignal }) {
    this.#hub = hub;
    this.#agent = options.agent;
    this.#signal = options.signal;
    this.#key = { namespace: options.namespace, name: `argocd-agent-migration-${options.agent}` };
  }

  /** Reads all records. @throws FatalError when somebody spoilt them */
  async load(): Promise<void> {
    const found = await this.#hub.get(configMaps, this.#key, this.#signal);
    this.#resourceVersion = found?.metadata.resourceVersion;
    try {
      const records = Object.values(found?.data ?? {}).map((text) => recordSchema.parse(JSON.parse(text)));
      this.#records = new Map(records.map((record) => [keyOf(record), record]));
    } catch (error) {
      throw new FatalError(`ConfigMap ${keyOf(this.#key)} cannot be read: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  get(key: ObjectKey): MoveRecord | undefined {
    return this.#records.get(keyOf(key));
  }

  list(): MoveRecord[] {
    return [...this.#records.values()];
  }

  async set(record: MoveRecord): Promise<void> {
    await this.#write(record, JSON.stringify(record));
    this.#records.set(keyOf(record), record);
  }

  async remove(record: MoveRecord): Promise<void> {
    await this.#write(record, null);
    this.#records.delete(keyOf(record));
  }

  async #write({ namespace, name }: MoveRecord, text: string | null): Promise<void> {
    const data = { [`${namespace}.${name}`]: text };
    const options = { fieldManager, signal: this.#signal };
    try {
      const written =
        this.#resourceVersion === undefined
          ? await this.#hub.create(
              configMaps,
              {
                metadata: {
                  ...this.#key,
                  labels: { [wellKnown.partOfLabel]: 'argocd-agent', [wellKnown.agentNameLabel]: this.#agent },
                },
                data: data as Record<string, string>,
              },
              options,
            )
          : await this.#hub.mergePatch(
              configMaps,
              this.#key,
              { metadata: { resourceVersion: this.#resourceVersion }, data },
              options,
            );
      this.#resourceVersion = written.metadata.resourceVersion;
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) {
        throw new FatalError(`ConfigMap ${keyOf(this.#key)} has changed: another migration of the cluster is running`);
      }
      throw error;
    }
  }
}
