import type { EventEmitter } from 'node:events';

/**
 * Puts a condition before all listeners that an event has so far: they are called only for what it admits. Node has no other way
 * to refuse a connection or a request before its server takes it.
 */
export function guard<Arguments extends unknown[]>(
  emitter: EventEmitter,
  event: string,
  admits: (...given: Arguments) => boolean,
): void {
  const listeners = emitter.listeners(event) as ((...given: Arguments) => void)[];
  emitter.removeAllListeners(event);
  emitter.on(event, (...given) => {
    if (admits(...(given as Arguments))) {
      for (const listener of listeners) {
        listener.apply(emitter, given as Arguments);
      }
    }
  });
}
