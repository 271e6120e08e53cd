import { type HistoryOutcome, type Scene, simulate, type TellerOptions } from '../index.ts';
import { SeveralPrincipals } from './several-principals.ts';
import { useVirtualGlobals } from './virtual-globals.ts';

/** Runs one history of a hub with several principals, as {@link simulate} does with one. */
export async function simulateSeveral(seed: number, options: TellerOptions = {}): Promise<HistoryOutcome> {
  let restore: (() => void) | undefined;
  try {
    return await simulate(seed, {
      ...options,
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
