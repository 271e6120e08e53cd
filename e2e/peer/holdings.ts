import { randomUUID } from 'node:crypto';
import { type Application, annotations, managedCopyDigest, specChecksum } from '../../lib/argocd/index.ts';
import { targets, type WireEvent, type WireTarget } from '../../lib/wire/index.ts';

/** Kinds as resync messages call them, by the target of the events about them. */
const kinds: Readonly<Record<string, string>> = {
  [targets.application]: 'Application',
  [targets.appProject]: 'AppProject',
  [targets.repository]: 'Repository',
  [targets.gpgKey]: 'GPGKey',
};

/** An object that an agent has from its principal: kept as it came, and looked into when something is to be said of it. */
export interface Holding {
  readonly target: WireTarget;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly sourceUid: string;
  /** Uid on the managed cluster. */
  readonly uid: string;
  /** Resource version on the managed cluster. */
  version: number;
  /** The principal's JSON. */
  data: Buffer;
}

/** The objects on one simulated cluster. */
export class Holdings {
  readonly #held = new Map<string, Holding>();
  #applications = 0;

  /** How many Applications there are. */
  get applications(): number {
    return this.#applications;
  }

  /** Everything, in the order in which it came. */
  values(): Iterable<Holding> {
    return this.#held.values();
  }

  /** The object that an event is about. */
  find(event: WireEvent): Holding | undefined {
    return this.#held.get(placeOf(event));
  }

  /** The object of a name. */
  at(target: WireTarget, namespace: string, name: string): Holding | undefined {
    return this.#held.get(`${target}/${namespace}/${name}`);
  }

  /** Keeps what a `create` or `spec-update` says. */
  keep(event: WireEvent): Holding {
    const place = placeOf(event);
    const { namespace, name } = namesOf(event);
    const sourceUid = event.resourceId.slice(name.length + 1);
    const before = this.#held.get(place);
    // The bytes that came are part of a larger buffer, which must not stay with them.
    const data = Buffer.from(event.data);
    if (before !== undefined && before.sourceUid === sourceUid) {
      before.data = data;
      before.version++;
      return before;
    }
    const made: Holding = {
      target: event.target as WireTarget,
      kind: kinds[event.target] ?? event.target,
      namespace,
      name,
      sourceUid,
      uid: randomUUID(),
      version: 1,
      data,
    };
    this.#held.set(place, made);
    if (before === undefined && event.target === targets.application) {
      this.#applications++;
    }
    return made;
  }

  /** The payload of the `request-update` that answers a `response-synced-resource`. */
  answerTo(event: WireEvent): object {
    const told = JSON.parse(Buffer.from(event.data).toString('utf8')) as {
      kind: string;
      name: string;
      namespace?: string;
    };
    const { kind, name, namespace = '' } = told;
    for (const [target, one] of Object.entries(kinds)) {
      const holding = one === kind ? this.#held.get(`${target}/${namespace}/${name}`) : undefined;
      if (holding !== undefined) {
        return requestUpdateOf(holding);
      }
    }
    return { kind, name, namespace, uid: '', checksum: null };
  }

  /** Forgets what a `delete` says, and returns it; what has another source stays. */
  drop(event: WireEvent): Holding | undefined {
    const place = placeOf(event);
    const { name } = namesOf(event);
    const before = this.#held.get(place);
    const sourceUid = event.resourceId.slice(name.length + 1);
    if (before === undefined || (sourceUid !== '' && before.sourceUid !== sourceUid)) {
      return undefined;
    }
    this.#held.delete(place);
    if (event.target === targets.application) {
      this.#applications--;
    }
    return before;
  }
}

/** The object as it is on the managed cluster. */
export function localObject(holding: Holding): Application {
  const object = JSON.parse(holding.data.toString('utf8')) as Application;
  const { uid, version, sourceUid } = holding;
  const noted = { ...object.metadata.annotations, [annotations.sourceUid]: sourceUid };
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(version), annotations: noted } };
}

/** The payload of the `request-update` about an object. */
export function requestUpdateOf(holding: Holding): object {
  const { kind, namespace, name, sourceUid: uid } = holding;
  const object = localObject(holding);
  const content = (object.spec ?? object.data ?? {}) as Record<string, unknown>;
  return {
    kind,
    name,
    namespace,
    uid,
    checksum: specChecksum(content),
    // What this project's agents add; others leave it out of what they read.
    ...(holding.target === targets.application ? { digest: managedCopyDigest(object) } : {}),
  };
}

function namesOf(event: WireEvent): { namespace: string; name: string } {
  const subject = event.subject ?? '';
  const slash = subject.indexOf('/');
  if (slash > 0) {
    return { namespace: subject.slice(0, slash), name: subject.slice(slash + 1) };
  }
  const { metadata } = JSON.parse(Buffer.from(event.data).toString('utf8')) as Application;
  return { namespace: metadata.namespace ?? '', name: metadata.name };
}

function placeOf(event: WireEvent): string {
  const { namespace, name } = namesOf(event);
  return `${event.target}/${namespace}/${name}`;
}
