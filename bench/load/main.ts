/* The load generator as a process of its own. */
import { runLoad } from './run.ts';

await runLoad(process.argv.slice(2));
