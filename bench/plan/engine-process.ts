/* One size of a fleet in the real engine, in a process of its own: it takes the fleet as JSON and prints the figures so. */
import { type EngineFleet, runEngine } from './engine.ts';

const [fleet = ''] = process.argv.slice(2);
process.stdout.write(`${JSON.stringify(await runEngine(JSON.parse(fleet) as EngineFleet))}\n`);
