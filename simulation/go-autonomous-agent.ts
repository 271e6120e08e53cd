import {
  type Application,
  annotations,
  type Message,
  type ResyncMessage,
  resourceListChecksum,
  specChecksum,
} from '../lib/argocd/index.ts';
import type { StoreChange } from '../lib/sync/index.ts';
import { SimulatedGoAgent } from './go-agent.ts';
import { agentNamespace } from './layout.ts';

/** An autonomous agent of argocd-agent: every change of an Application is an event. */
export class AutonomousGoAgent extends SimulatedGoAgent {
  protected resync(): void {
    this.send({ target: 'resourceResync', type: 'request-resource-resync', payload: {} });
  }

  protected async process(message: Message): Promise<void> {
    if (message.target === 'resourceResync') {
      this.#answer(message);
    } else if (message.target === 'application' && message.type !== 'error') {
      const { name, annotations: marks } = message.object.metadata;
      const ref = { namespace: agentNamespace, name };
      const refresh = marks?.[annotations.refresh];
      if (message.type === 'spec-update' && refresh !== undefined) {
        await this.#write(ref, { metadata: { annotations: { [annotations.refresh]: refresh } } });
      } else if (message.type === 'set-operation') {
        await this.#write(ref, { operation: message.object.operation });
      } else if (message.type === 'terminate-operation' && this.cache.get(name)?.status?.operationState !== undefined) {
        await this.store.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
      }
    }
  }

  async #write(ref: { namespace: string; name: string }, patch: object): Promise<void> {
    const written = await this.store.patch(ref, patch as Readonly<Record<string, unknown>>);
    this.wrote(written);
  }

  #answer(message: ResyncMessage): void {
    if (message.type === 'request-update' && message.payload.kind === 'Application') {
      const { name, uid, checksum } = message.payload;
      const local = this.cache.get(name);
      if (local === undefined) {
        const metadata = { namespace: agentNamespace, name, uid, resourceVersion: '' };
        this.send({ target: 'application', type: 'delete', object: { metadata, spec: {} } });
      } else if (specChecksum(local.spec) !== checksum) {
        this.send({ target: 'application', type: 'spec-update', object: local });
      }
    } else if (message.type === 'request-synced-resource-list') {
      const all = [...this.cache.values()].map(({ metadata: { name, uid = '' } }) => ({
        kind: 'Application',
        name,
        uid,
      }));
      if (all.length > 0 && resourceListChecksum(all) !== message.payload.checksum) {
        for (const { name, uid } of all) {
          const payload = { kind: 'Application', name, uid, namespace: agentNamespace } as const;
          this.send({ target: 'resourceResync', type: 'response-synced-resource', payload });
        }
      }
    }
  }

  protected changed({ old, now }: StoreChange<Application>): void {
    const object = now ?? old;
    if (object === undefined) {
      return;
    }
    const { name, uid, resourceVersion = '' } = object.metadata;
    const known = this.cache.get(name);
    if (now === undefined) {
      this.cache.delete(name);
      if (known !== undefined) {
        this.send({ target: 'application', type: 'delete', object });
      }
      return;
    }
    this.cache.set(name, now);
    if (known?.metadata.uid !== uid) {
      this.send({ target: 'application', type: 'create', object });
    } else if (known?.metadata.resourceVersion !== resourceVersion && !this.isOwnWrite(now)) {
      this.send({ target: 'application', type: 'spec-update', object });
    }
  }
}
