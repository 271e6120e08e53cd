import { runSimulator } from './command.ts';
import { simulateSeveral } from './principals/simulate-several.ts';
import { simulate } from './simulate.ts';

await runSimulator({
  one: simulate,
  several: simulateSeveral,
});
