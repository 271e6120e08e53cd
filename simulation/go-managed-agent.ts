import {
  type Application,
  annotations,
  type Message,
  resourceListChecksum,
  specChecksum,
} from '../lib/argocd/index.ts';
import { type ObjectRef, refOf, type StoreChange } from '../lib/sync/index.ts';
import { Refused } from './cluster.ts';
import { SimulatedGoAgent } from './go-agent.ts';
import { canonical } from './json.ts';
import { agentNamespace } from './layout.ts';

type Spec = Application['spec'];

/** How often it writes over what others have written in between. */
const mostAttempts = 5;

/**
 * A managed agent of argocd-agent, as far as it decides what stands on its cluster. It deletes by name, whatever it has of that name,
 * with the finalizers that it has there. An Application of another principal becomes this one's as it is; of the same principal it is
 * deleted and made again when its source was. What it does not manage, or manages already, it refuses, and acknowledges that.
 */
export class ManagedGoAgent extends SimulatedGoAgent {
  readonly #managed = new Set<string>();
  /** What the principal sent last, by the source's uid. */
  readonly #specs = new Map<string, Spec>();
  /** Uids of the sources whose copies are being deleted for the principal. */
  readonly #expected = new Set<string>();

  protected resync(): void {
    const copies = [...this.cache.values()].filter((copy) => sourceOf(copy) !== '');
    for (const copy of copies) {
      this.#report(copy);
    }
    const checksum = resourceListChecksum(
      copies.map((copy) => ({ kind: 'Application', name: copy.metadata.name, uid: sourceOf(copy) })),
    );
    this.send({ target: 'resourceResync', type: 'request-synced-resource-list', payload: { checksum } });
  }

  protected async process(message: Message): Promise<void> {
    if (message.target === 'resourceResync') {
      await this.#answer(message);
      return;
    }
    if (message.target !== 'application' || message.type === 'error') {
      return;
    }
    const ref = { namespace: agentNamespace, name: message.object.metadata.name };
    switch (message.type) {
      case 'create':
      case 'spec-update':
        return this.#take(ref, message.object, message.principalUid ?? '', message.type === 'create');
      case 'delete':
        return this.#delete(ref);
      case 'set-operation':
      case 'terminate-operation':
        return this.#request(ref, message.type, message.object);
      default:
        return;
    }
  }

  protected changed({ old, now }: StoreChange<Application>): void {
    const object = now ?? old;
    if (object === undefined) {
      return;
    }
    const { name } = object.metadata;
    const known = this.cache.get(name);
    if (now === undefined) {
      this.cache.delete(name);
      if (known !== undefined) {
        this.#lost(object);
      }
      return;
    }
    this.cache.set(name, now);
    if (!this.#managed.has(name)) {
      this.#managed.add(name);
      return;
    }
    if (known?.metadata.resourceVersion !== now.metadata.resourceVersion && !this.isOwnWrite(now)) {
      this.#revert(now);
      if (sourceOf(now) !== '') {
        this.send({ target: 'application', type: 'status-update', object: now });
      }
    }
  }

  async #answer(message: Message & { readonly target: 'resourceResync' }): Promise<void> {
    if (message.type === 'request-resource-resync') {
      for (const copy of this.cache.values()) {
        if (sourceOf(copy) !== '') {
          this.#report(copy);
        }
      }
    } else if (message.type === 'response-synced-resource' && message.payload.kind === 'Application') {
      const { name } = message.payload;
      const copy = await this.store.read({ namespace: agentNamespace, name });
      if (copy === undefined) {
        const payload = { kind: 'Application', name, namespace: agentNamespace, uid: '', checksum: null } as const;
        this.send({ target: 'resourceResync', type: 'request-update', payload });
      } else if (sourceOf(copy) !== '') {
        this.#report(copy);
      }
    }
  }

  #report(copy: Application): void {
    const { name } = copy.metadata;
    const [uid, checksum] = [sourceOf(copy), specChecksum(copy.spec)];
    const payload = { kind: 'Application', name, namespace: agentNamespace, uid, checksum } as const;
    this.send({ target: 'resourceResync', type: 'request-update', payload });
  }

  async #take(ref: ObjectRef, incoming: Application, principal: string, isCreation: boolean): Promise<void> {
    const existing = await this.store.read(ref);
    if (existing === undefined) {
      await this.#create(ref, incoming, principal);
      return;
    }
    const held = sourceOf(existing);
    if (held === '') {
      // It adopts nothing by default.
      throw new Refused(isCreation ? 409 : 404, 'source UID annotation is not found');
    }
    if (held !== incoming.metadata.uid && existing.metadata.annotations?.[annotations.principalUid] === principal) {
      await this.#delete(ref);
      await this.#create(ref, incoming, principal);
      return;
    }
    await this.#update(ref, incoming, principal);
  }

  async #create(ref: ObjectRef, incoming: Application, principal: string): Promise<void> {
    if (this.#managed.has(ref.name)) {
      throw new Refused(409, 'application is already managed');
    }
    const { labels, annotations: marks, finalizers, uid = '' } = incoming.metadata;
    const spec = here(incoming.spec);
    this.#specs.set(uid, spec);
    const identity = { [annotations.sourceUid]: uid, [annotations.principalUid]: principal };
    const created = await this.store.create({
      metadata: {
        ...ref,
        ...(labels && { labels }),
        annotations: { ...marks, ...identity },
        ...(finalizers && { finalizers }),
      },
      spec,
    });
    this.#managed.add(ref.name);
    this.wrote(created);
  }

  async #update(ref: ObjectRef, incoming: Application, principal: string): Promise<void> {
    const { uid = '', labels = {}, finalizers = [], annotations: others, deletionTimestamp } = incoming.metadata;
    const spec = here(incoming.spec);
    this.#specs.set(uid, spec);
    const existing = await this.#write(ref, (now) => {
      const refresh = now.metadata.annotations?.[annotations.refresh];
      const marks = {
        ...others,
        ...(refresh !== undefined && { [annotations.refresh]: refresh }),
        [annotations.sourceUid]: uid,
        [annotations.principalUid]: principal,
      };
      return { ...now, metadata: { ...now.metadata, labels, finalizers, annotations: marks }, spec };
    });
    if (deletionTimestamp !== undefined && existing.metadata.deletionTimestamp === undefined) {
      this.#expected.add(uid);
      await this.store.delete(ref, { propagation: 'Foreground' });
    }
  }

  async #delete(ref: ObjectRef): Promise<void> {
    if (!this.#managed.has(ref.name)) {
      throw new Refused(404, 'application is not managed');
    }
    const existing = await this.store.read(ref);
    if (existing === undefined) {
      throw new Refused(404, 'NotFound');
    }
    this.#expected.add(sourceOf(existing));
    await this.store.delete(ref, { propagation: 'Background' });
    this.#specs.delete(sourceOf(existing));
    this.#managed.delete(ref.name);
  }

  async #request(
    ref: ObjectRef,
    type: 'set-operation' | 'terminate-operation',
    { metadata, operation }: Application,
  ): Promise<void> {
    const existing = await this.store.read(ref);
    const phase = existing?.status?.operationState?.phase;
    if (existing === undefined || (type === 'set-operation' && sourceOf(existing) !== metadata.uid)) {
      throw new Refused(404, 'it has no such application');
    }
    if (type === 'terminate-operation') {
      if (phase === undefined) {
        throw new Refused(404, 'application has no operation state');
      }
      await this.store.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
    } else if (operation !== undefined && phase !== 'Terminating') {
      this.wrote(await this.store.patch(ref, { operation }));
    }
  }

  /** Somebody else changed what the principal decides. */
  #revert(now: Application): void {
    const wanted = this.#specs.get(sourceOf(now));
    if (wanted !== undefined && canonical(wanted) !== canonical(now.spec)) {
      this.#write(refOf(now), (local) => ({ ...local, spec: wanted })).catch(() => undefined);
    }
  }

  /** What somebody deleted is made again, unless the principal wanted that. */
  #lost(last: Application): void {
    const { name, namespace = '' } = last.metadata;
    const source = sourceOf(last);
    if (source !== '' && !this.#expected.delete(source)) {
      const { labels, annotations: marks, finalizers } = last.metadata;
      const metadata = {
        ...{ namespace, name },
        ...(labels && { labels }),
        ...(marks && { annotations: marks }),
        ...(finalizers && { finalizers }),
      };
      const { spec, status, operation } = last;
      const again = { metadata, spec, ...(status && { status }), ...(operation && { operation }) };
      this.store.create(again).catch(() => undefined);
      return;
    }
    if (this.#managed.delete(name)) {
      this.send({ target: 'application', type: 'delete', object: last });
    }
  }

  async #write(ref: ObjectRef, change: (now: Application) => Application): Promise<Application> {
    for (let attempt = 1; ; attempt++) {
      const now = await this.store.read(ref);
      if (now === undefined) {
        throw new Refused(404, 'NotFound');
      }
      try {
        const written = await this.store.replace(change(now));
        this.wrote(written);
        return written;
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 409 || attempt === mostAttempts) {
          throw error;
        }
      }
    }
  }
}

function sourceOf({ metadata }: Application): string {
  return metadata.annotations?.[annotations.sourceUid] ?? '';
}

/** The spec as it is on the agent's own cluster. */
function here(spec: Spec): Spec {
  const { server: _, ...destination } = spec.destination ?? {};
  return { ...spec, destination: { ...destination, name: 'in-cluster' } };
}
