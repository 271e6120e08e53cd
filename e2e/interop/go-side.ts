import { type EventReader, ScriptedPeer } from '../peer/index.ts';
import { GoEventWriter, type Pace } from './event-writer.ts';
import { acknowledgementOf, extensionOf, type GoEvent, targetOf, typeOf } from './go-event.ts';
import type { GoObject } from './templates.ts';

/** The event stream of an original, on either side, over one connection after the other. */
export type GoStream = ScriptedPeer<GoEvent, GoEventWriter>;

/** How an original speaks. */
export interface GoSpeech {
  readonly pace: Pace;
  readonly random: () => number;
  /** Takes an event; the reason if it is refused. */
  readonly handle: (event: GoEvent) => string | undefined;
}

const reader: EventReader<GoEvent> = {
  targetOf,
  describe: (event) => `${targetOf(event)} ${typeOf(event)} ${extensionOf(event, 'eventid')}`,
};

/** The stream of a process that has just started. */
export function goStream(source: string, speech: GoSpeech): GoStream {
  const manners = { handle: speech.handle, acknowledge: (event: GoEvent) => acknowledgementOf(event, source) };
  return new ScriptedPeer({ writer: new GoEventWriter(speech), reader, manners });
}

/** The kinds that an agent and a principal keep in step, as resync messages name them. */
const kinds = {
  application: 'Application',
  appproject: 'AppProject',
  repository: 'Repository',
  gpgkey: 'GPGKey',
} as const;
/** The target of events about them. */
export type GoTarget = keyof typeof kinds;

/** The kind of a target. */
export const goKind = (target: GoTarget) => kinds[target];

/** The objects of one side. They outlive its process. */
export class GoObjects<T extends GoTarget> {
  /** By target and name. */
  readonly maps: Readonly<Record<T, Map<string, GoObject>>>;
  readonly #targets: readonly T[];
  #version: number;

  /** @param version the resourceVersion before the first */
  constructor(targets: readonly T[], version: number) {
    this.maps = Object.fromEntries(targets.map((target) => [target, new Map()])) as Record<T, Map<string, GoObject>>;
    this.#targets = targets;
    this.#version = version;
  }

  /** The object of that name. @throws Error when there is none */
  get(target: T, name: string): GoObject {
    const object = this.maps[target].get(name);
    if (object === undefined) {
      throw new Error(`there is no ${target} ${name}`);
    }
    return object;
  }

  /** Everything, target by target. */
  all(): { readonly target: T; readonly name: string; readonly object: GoObject }[] {
    return this.#targets.flatMap((target) =>
      Array.from(this.maps[target], ([name, object]) => ({ target, name, object })),
    );
  }

  /** The target of a kind; undefined if this side does not know it. */
  targetOf(kind: unknown): T | undefined {
    return this.#targets.find((target) => kinds[target] === kind);
  }

  /** Gives the object a version of its own. */
  touch(object: GoObject): void {
    this.#version += 1;
    object.metadata.resourceVersion = String(this.#version);
  }
}
