import { runSimulator, simulate } from '../../lib/sync/testing.ts';
import { simulateSeveral } from './simulate-several.ts';

await runSimulator({
  one: (seed, trace) => simulate(seed, { trace }),
  several: simulateSeveral,
});
