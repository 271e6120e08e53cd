import { isNotFound } from './errors.ts';
import { groupVersionPath } from './paths.ts';
import { type ResourceType, resourceType } from './types.ts';

interface ApiResourceList {
  resources?: { name: string; kind: string; namespaced: boolean; group?: string; version?: string }[];
}

interface GroupVersion {
  readonly kinds: ReadonlyMap<string, ResourceType>;
  readonly readAt: number;
}

const askAgainAfterMs = 1_000;

/**
 * Maps apiVersion and kind to URLs by the server's discovery documents, one group version at a time. A kind that is
 * not in the cache may have been installed since, so a miss reads the document again.
 */
export class Discovery {
  readonly #fetch: (path: string, signal?: AbortSignal) => Promise<unknown>;
  readonly #cache = new Map<string, GroupVersion>();
  readonly #reading = new Map<string, Promise<GroupVersion>>();

  constructor(fetch: (path: string, signal?: AbortSignal) => Promise<unknown>) {
    this.#fetch = fetch;
  }

  /** The kind, or undefined when the server does not serve it. */
  async resolve(apiVersion: string, kind: string, signal?: AbortSignal): Promise<ResourceType | undefined> {
    const cached = this.#cache.get(apiVersion);
    const hit = cached?.kinds.get(kind);
    if (hit || (cached && performance.now() - cached.readAt < askAgainAfterMs)) {
      return hit;
    }
    return (await this.#read(apiVersion, signal)).kinds.get(kind);
  }

  async #read(apiVersion: string, signal?: AbortSignal): Promise<GroupVersion> {
    signal?.throwIfAborted();
    let reading = this.#reading.get(apiVersion);
    if (!reading) {
      // Shared between callers, so no single caller's signal may end it; the request has a time limit of its own.
      reading = this.#fetchGroupVersion(apiVersion).finally(() => this.#reading.delete(apiVersion));
      this.#reading.set(apiVersion, reading);
    }
    return reading;
  }

  async #fetchGroupVersion(apiVersion: string): Promise<GroupVersion> {
    const slash = apiVersion.indexOf('/');
    const group = slash < 0 ? '' : apiVersion.slice(0, slash);
    const version = apiVersion.slice(slash + 1);
    const kinds = new Map<string, ResourceType>();
    try {
      const document = (await this.#fetch(groupVersionPath({ group, version }))) as ApiResourceList;
      for (const { name, kind, namespaced } of document.resources ?? []) {
        if (!name.includes('/')) {
          kinds.set(kind, resourceType({ group, version, kind, plural: name, namespaced }));
        }
      }
    } catch (error) {
      if (!isNotFound(error)) {
        throw error; // 404: the group version is not served (yet)
      }
    }
    const entry = { kinds, readAt: performance.now() };
    this.#cache.set(apiVersion, entry);
    return entry;
  }
}
