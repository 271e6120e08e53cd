import { runSimulator } from './command.ts';
import { simulate } from './simulate.ts';

await runSimulator({ one: (seed, trace) => simulate(seed, { trace }) });
