import { abortable, withDeadline } from '../lib/base/index.ts';
import type { PrincipalCaches } from './caches.ts';

const sharedNames = ['AppProjects', 'all AppProjects', 'Argo CD settings', 'Secrets', 'GPG keys'] as const;
type Name = 'Applications' | (typeof sharedNames)[number];
/** Limit for a list and what it shows to arrive, ms. */
const limitMs = 10_000;

/**
 * A function that resolves when the caches from which an agent is served have what the API server had at the call. With
 * namespace-based mapping, of Applications only the agent's are asked for. All else is asked for once for all agents that
 * wait at the same time, so that a thousand agents that come at once do not cost a thousand lists of the whole fleet.
 */
export function freshCaches(
  caches: { readonly [name in Name]: Pick<PrincipalCaches[name], 'caughtUp'> },
  { mapping, signal: end }: { readonly mapping: 'namespace' | 'destination'; readonly signal: AbortSignal },
): (agent: string, signal: AbortSignal) => Promise<void> {
  const sharedOf = (name: Name) => shared(() => withDeadline(end, limitMs, (signal) => caches[name].caughtUp(signal)));
  const all = sharedNames.map(sharedOf);
  const everyApplication = sharedOf('Applications');
  return async (agent, signal) => {
    const applications = mapping === 'namespace' ? caches.Applications.caughtUp(signal, agent) : everyApplication();
    await abortable(Promise.all([applications, ...all.map((caughtUp) => caughtUp())]), signal);
  };
}

/** Runs for all that call while a run is under way once more, when that one has ended: every call's run begins after the call. */
function shared(run: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const begin = () => {
    const begun = run().finally(() => {
      if (current === begun) {
        current = undefined;
      }
    });
    current = begun;
    return begun;
  };
  return () => {
    if (current === undefined) {
      return begin();
    }
    next ??= current
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
}
