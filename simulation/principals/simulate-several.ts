import { type HistoryOutcome, type Scene, simulate } from '../index.ts';
import { SeveralPrincipals } from './several-principals.ts';
import { useVirtualGlobals } from './virtual-globals.ts';

/**
 * Runs one history of a hub with several principals, as {@link simulate} does with one.
 * @param trace called for everything that happens
 */
export async function simulateSeveral(seed: number, trace?: (line: string) => void): Promise<HistoryOutcome> {
  let restore: (() => void) | undefined;
  try {
    return await simulate(seed, {
      trace,
      hubSide: (scene: Scene) => {
        restore = useVirtualGlobals(scene.time, scene.dice);
        return new SeveralPrincipals(scene);
      },
      over: () => restore?.(),
    });
  } finally {
    restore?.();
  }
}
