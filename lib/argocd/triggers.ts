import type { Application } from './application.ts';
import { annotations } from './names.ts';

/**
 * Requests to Argo CD in the form of annotations: set by a user on the hub, removed by the controller that did them. The
 * first of each says what to do, the other which request it is; controllers before 3.6 leave the second where it is.
 */
export const triggers = [
  [annotations.refresh, annotations.refreshTimestamp],
  [annotations.hydrate, annotations.hydrateTimestamp],
] as const;

/** All annotations of {@link triggers}. */
export const triggerAnnotations = triggers.flat();

/** The trigger annotations of an object that ask for something. */
export function triggersOf(object: Application): Readonly<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const [request, which] of triggers) {
    for (const key of object.metadata.annotations?.[request] === undefined ? [] : [request, which]) {
      const value = object.metadata.annotations?.[key];
      if (value !== undefined) {
        result[key] = value;
      }
    }
  }
  return result;
}

/** Triggers that `now` carries and `before` did not carry in the same way. */
export function newTriggers(now: Application, before: Application | undefined): Readonly<Record<string, string>> {
  const known = before === undefined ? {} : triggersOf(before);
  const wanted = triggersOf(now);
  const result: Record<string, string> = {};
  for (const keys of triggers) {
    if (keys.some((key) => wanted[key] !== undefined && wanted[key] !== known[key])) {
      Object.assign(result, Object.fromEntries(keys.flatMap((key) => (key in wanted ? [[key, wanted[key]]] : []))));
    }
  }
  return result;
}
