import { failureOf, isAnswer, type ObjectRef, type Runtime } from '../../sync/index.ts';
import type { ApplicationMessage } from '../peer/messages.ts';
import { placeOf } from '../place.ts';
import { failureText } from './failure-text.ts';
import { Failures } from './failures.ts';
import { LastingFailures } from './lasting-failures.ts';

/** How {@link RefusedRequests} work. */
export interface RefusedRequestsOptions {
  /** Whether work for this Application waits: what is refused is then tried after it. */
  readonly isBusy: (ref: ObjectRef) => boolean;
  /** Has a request carried out once more. */
  readonly again: (ref: ObjectRef, message: ApplicationMessage) => void;
  /** What {@link RefusedRequests.textOf} says of an Application has changed. */
  readonly changed: (ref: ObjectRef) => void;
  readonly runtime: Runtime;
}

/** Beyond any number of Applications that users have operated at once. Further requests keep their turn. */
const most = 10_000;

/** How long people hear of a request that is not for this side, unless another one follows it. */
const saidMs = 3_600_000;

const notDone: Readonly<Record<string, string>> = {
  'set-operation': 'operation not started',
  create: 'operation not started',
  'terminate-operation': 'operation not terminated',
  'spec-update': 'not refreshed',
};

/**
 * Requests to Argo CD that the API server refuses: the newest of each kind for each Application is kept and tried again
 * ever more rarely. Nothing waits for it meanwhile. It is not acknowledged before it is carried out, so that no restart
 * loses it.
 */
export class RefusedRequests {
  readonly #options: RefusedRequestsOptions;
  readonly #failures: Failures;
  readonly #lasting: LastingFailures;
  readonly #kept = new Map<string, ApplicationMessage>();
  /** What ends the texts about requests that are not kept, by name. */
  readonly #endings = new Map<string, () => void>();

  constructor(options: RefusedRequestsOptions) {
    this.#options = options;
    this.#failures = new Failures(options.runtime);
    this.#lasting = new LastingFailures(options.runtime.clock);
  }

  /** Requests that are kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** A request could not be carried out. True when it is kept here. */
  keeps(ref: ObjectRef, message: ApplicationMessage, error: unknown): boolean {
    const name = nameOf(ref, message);
    const isRefused = failureOf(error) === 'rejected';
    const isLasting = isAnswer(error) && this.#lasting.isLasting(name);
    const hasRoom = this.#kept.size < most || this.#kept.has(name);
    if (!hasRoom || !(isRefused || isLasting || (isAnswer(error) && this.#kept.has(name)))) {
      return false;
    }
    this.#keep(ref, message, textAbout(message, failureText(error)));
    return true;
  }

  /** A request cannot be carried out yet, and not for the API server's sake. It is kept as one that is refused. */
  postpones(ref: ObjectRef, message: ApplicationMessage, reason: string): void {
    if (this.#kept.size < most || this.#kept.has(nameOf(ref, message))) {
      this.#keep(ref, message, textAbout(message, reason));
    } else {
      this.denies(ref, message, reason);
    }
  }

  /** A request is not for this side. It is not tried again; people hear of it for an hour, or until the next one. */
  denies(ref: ObjectRef, message: ApplicationMessage, reason: string): void {
    const { changed, runtime } = this.#options;
    const name = nameOf(ref, message);
    const text = textAbout(message, reason);
    this.#kept.delete(name);
    this.#failures.met(name, text);
    runtime.log.warn({ application: placeOf(ref) }, text);
    changed(ref);
    this.#unsay(name);
    this.#endings.set(
      name,
      runtime.clock.after(saidMs, () => this.settled(ref, message)),
    );
  }

  /** A request is carried out, or there is nothing to do. */
  settled(ref: ObjectRef, message: ApplicationMessage): void {
    const name = nameOf(ref, message);
    this.#lasting.solved(name);
    this.#unsay(name);
    this.#kept.delete(name);
    if (this.#failures.solved(name)) {
      this.#options.changed(ref);
    }
  }

  /** Whether the message is not carried out yet. */
  isOpen(ref: ObjectRef, message: ApplicationMessage): boolean {
    return this.#kept.get(nameOf(ref, message))?.eventId === message.eventId;
  }

  /** What people have to hear of an Application; undefined: nothing. */
  textOf(ref: ObjectRef): string | undefined {
    const texts = kinds
      .map((kind) => this.#failures.of(`${kind} ${placeOf(ref)}`))
      .filter((text) => text !== undefined);
    return texts.length === 0 ? undefined : texts.join('; ');
  }

  /** Stops all timers. */
  close(): void {
    this.#failures.close();
    this.#kept.clear();
    for (const cancel of this.#endings.values()) {
      cancel();
    }
    this.#endings.clear();
  }

  #unsay(name: string): void {
    this.#endings.get(name)?.();
    this.#endings.delete(name);
  }

  #keep(ref: ObjectRef, message: ApplicationMessage, text: string): void {
    const { isBusy, again, changed, runtime } = this.#options;
    const name = nameOf(ref, message);
    this.#unsay(name);
    this.#kept.set(name, message);
    const retry = () => (isBusy(ref) ? this.#keep(ref, message, text) : again(ref, message));
    if (this.#failures.met(name, text, retry)) {
      runtime.log.warn({ application: placeOf(ref) }, `${text}, will retry`);
      changed(ref);
    }
  }
}

const kinds = ['set-operation', 'terminate-operation', 'spec-update'];

function textAbout({ type }: ApplicationMessage, reason: string): string {
  return `${notDone[type] ?? type}: ${reason}`;
}

/** A creation is a request where an operation comes with it. */
function nameOf(ref: ObjectRef, { type }: ApplicationMessage): string {
  return `${type === 'create' ? 'set-operation' : type} ${placeOf(ref)}`;
}
