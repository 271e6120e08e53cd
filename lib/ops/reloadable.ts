import { readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { abortable, after, type Logger } from '../base/index.ts';
import { FatalError } from './errors.ts';

/** Text by name: the decoded fields of a Secret, or the contents of files. */
export type TextFields = Readonly<Record<string, string>>;

/** When fields that were refused are read again. */
const readAgainMs = 60_000;

/**
 * Something read from a Secret or from files that may be replaced while the program runs: certificates, keys. A bad
 * replacement is logged and the last good value stays.
 */
export class Reloadable<T> {
  /** Where it comes from, for messages: `Secret argocd/argocd-agent-jwt`. */
  readonly origin: string;
  readonly #parse: (fields: TextFields) => T;
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  #text: string | undefined;
  #value: { readonly of: T } | undefined;
  #problem: string | undefined = 'not read yet';
  #cancel: () => void = () => undefined;

  /** `parse` throws an Error that says what is wrong with the fields. */
  constructor(options: { origin: string; parse: (fields: TextFields) => T; logger: Logger }) {
    this.origin = options.origin;
    this.#parse = options.parse;
    this.#logger = options.logger;
  }

  /** The last good value. */
  get value(): T | undefined {
    return this.#value?.of;
  }

  /** Why there is no value, or why the newest fields were refused. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Gives it the newest fields; undefined when the source does not exist. */
  offer(fields: TextFields | undefined): void {
    const text = fields === undefined ? undefined : JSON.stringify(fields);
    if (text === this.#text && this.#problem !== 'not read yet') {
      return;
    }
    this.#text = text;
    this.#read(fields, false);
  }

  /** @param isAgain they were refused before */
  #read(fields: TextFields | undefined, isAgain: boolean): void {
    this.#cancel();
    const before = this.#value;
    try {
      if (fields === undefined) {
        throw new Error('does not exist');
      }
      this.#value = { of: this.#parse(fields) };
      this.#problem = undefined;
      if (before !== undefined) {
        this.#logger.info({ origin: this.origin }, 'credentials changed and were reloaded');
      }
    } catch (error) {
      const { message } = error as Error;
      if (fields !== undefined) {
        // A certificate is expired, or not, by a clock that may be set.
        this.#cancel = after(readAgainMs, () => this.#read(fields, true), { unref: true });
      }
      if (isAgain && message === this.#problem) {
        return;
      }
      this.#problem = message;
      const about = { origin: this.origin, reason: this.#problem };
      if (before === undefined) {
        this.#logger.warn(about, 'waiting for credentials');
      } else {
        this.#logger.error(about, 'credentials changed but cannot be used, the former ones stay in use');
      }
    }
    for (const listener of this.#listeners) {
      listener();
    }
  }

  /** Calls back after every change, good or bad; returns how to stop. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves with the first good value.
   * @throws FatalError that names the origin and the advice when there is none within the time
   */
  async ready(options: { timeoutMs: number; advice: string; signal: AbortSignal }): Promise<T> {
    const { timeoutMs, advice, signal } = options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const check = () => {
      if (this.#value !== undefined) {
        resolve(this.#value.of);
      }
    };
    const expire = () => reject(new FatalError(`${this.origin}: ${this.#problem}. ${advice}`));
    const cancel = after(timeoutMs, expire);
    const unsubscribe = this.subscribe(check);
    check();
    try {
      return await abortable(promise, signal);
    } finally {
      cancel();
      unsubscribe();
    }
  }
}

/** A Secret as the API server returns it: `data` in base64. */
interface SecretLike {
  data?: Record<string, string>;
}

/** The part of an informer that `followSecret` needs. */
interface SecretInformer {
  subscribe(handler: {
    added(secret: SecretLike & { metadata: { name: string } }): void;
    updated(old: unknown, now: SecretLike & { metadata: { name: string } }): void;
    deleted(last: SecretLike & { metadata: { name: string } }): void;
  }): () => void;
}

/** Keeps `live` at what the Secret of that name holds. */
export function followSecret(informer: SecretInformer, name: string, live: Reloadable<unknown>): () => void {
  const offer = (secret: SecretLike & { metadata: { name: string } }) => {
    if (secret.metadata.name === name) {
      live.offer(decodeSecret(secret));
    }
  };
  return informer.subscribe({
    added: offer,
    updated: (_, now) => offer(now),
    deleted: (last) => {
      if (last.metadata.name === name) {
        live.offer(undefined);
      }
    },
  });
}

/**
 * Like `followSecret`, with the fields of a second Secret, if there is one, added to those of the first. Their names get
 * its name and a slash in front.
 */
export function followSecretWith(
  informer: SecretInformer,
  name: string,
  second: string,
  live: Reloadable<unknown>,
): () => void {
  const fields = new Map<string, TextFields>();
  let isDue = false;
  const offer = () => {
    isDue = false;
    const [main, extra = {}] = [fields.get(name), fields.get(second)];
    const added = Object.entries(extra).map(([field, text]) => [`${second}/${field}`, text]);
    live.offer(main && { ...main, ...Object.fromEntries(added) });
  };
  const changed = (secret: SecretLike & { metadata: { name: string } }, isThere: boolean) => {
    const { name: changedName } = secret.metadata;
    if (changedName !== name && changedName !== second) {
      return;
    }
    if (isThere) {
      fields.set(changedName, decodeSecret(secret));
    } else {
      fields.delete(changedName);
    }
    if ((isThere || changedName === name || fields.has(name)) && !isDue) {
      // The objects of one list are reported one after the other: both Secrets are offered together.
      isDue = true;
      queueMicrotask(offer);
    }
  };
  return informer.subscribe({
    added: (secret) => changed(secret, true),
    updated: (_, secret) => changed(secret, true),
    deleted: (secret) => changed(secret, false),
  });
}

/** The fields of a Secret as text. */
export function decodeSecret(secret: SecretLike): TextFields {
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([field, base64]) => [field, Buffer.from(base64, 'base64').toString('utf8')]),
  );
}

/**
 * Keeps `live` at what the files hold, until aborted. Their folders are watched, because a mounted Secret is replaced by
 * switching a link beside the file.
 * @throws FatalError when a file cannot be read at the start
 */
export function followFiles(files: TextFields, live: Reloadable<unknown>, signal: AbortSignal): void {
  const read = () =>
    Object.fromEntries(Object.entries(files).map(([field, path]) => [field, readFileSync(path, 'utf8')]));
  try {
    live.offer(read());
  } catch (error) {
    throw new FatalError(`${live.origin}: ${(error as Error).message}`, { cause: error });
  }
  const again = () => {
    try {
      live.offer(read());
    } catch {
      live.offer(undefined);
    }
  };
  for (const folder of new Set(Object.values(files).map((path) => dirname(path)))) {
    watch(folder, { signal, persistent: false }, again).on('error', again);
  }
}
