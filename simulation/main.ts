import { runSimulator } from './command.ts';
import { simulateSeveral } from './principals/simulate-several.ts';
import { simulate } from './simulate.ts';

await runSimulator({
  one: (seed, trace) => simulate(seed, { trace }),
  several: simulateSeveral,
});
