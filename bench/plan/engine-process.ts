/* One size of a fleet in the real engine, in a process of its own. Prints one line of JSON. */
import { parseArgs } from 'node:util';
import { amount } from '../scale/options.ts';
import { runEngine } from './engine.ts';

const { values } = parseArgs({
  options: { agents: { type: 'string' }, applications: { type: 'string' }, changes: { type: 'string' } },
});
const figures = await runEngine({
  agents: amount('agents', values.agents ?? '100'),
  perAgent: amount('applications', values.applications ?? '50'),
  changes: amount('changes', values.changes ?? '1000'),
});
process.stdout.write(`${JSON.stringify(figures)}\n`);
