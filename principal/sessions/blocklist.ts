import type { Logger } from '../../lib/base/index.ts';
import type { ConfigMap, Informer } from '../../lib/kube/index.ts';

/** Name of the ConfigMap. */
export const blocklistName = 'argocd-agent-tls-blocklist';

/**
 * The certificates that no agent may use any more: the keys of ConfigMap `argocd-agent-tls-blocklist` are fingerprints
 * (SHA-256 of the DER form, 64 upper-case hex digits). No ConfigMap, nothing blocked.
 */
export class Blocklist {
  readonly #logger: Logger;
  #fingerprints: ReadonlySet<string> = new Set();
  #changed: () => void = () => undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Reads the ConfigMap from an informer from now on; `changed` is called after each change of the list. */
  follow(informer: Informer<ConfigMap>, changed: () => void): void {
    this.#changed = changed;
    informer.subscribe({
      added: (now) => this.#take(now.metadata.name, now.data),
      updated: (_, now) => this.#take(now.metadata.name, now.data),
      deleted: (last) => this.#take(last.metadata.name, {}),
    });
  }

  has(fingerprint: string): boolean {
    return this.#fingerprints.has(fingerprint.toUpperCase());
  }

  #take(object: string, data: Readonly<Record<string, string>> = {}): void {
    if (object !== blocklistName) {
      return;
    }
    this.#fingerprints = new Set(Object.keys(data).map((key) => key.toUpperCase()));
    this.#logger.info({ count: this.#fingerprints.size }, 'the list of blocked certificates was read');
    this.#changed();
  }
}
