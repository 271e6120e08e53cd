import { setTimeout as sleep } from 'node:timers/promises';
import { pairApplications } from '../../e2e/pair/index.ts';
import { inParallel } from '../in-parallel.ts';
import { applicationName, type Hub } from './hub.ts';

const perSecond = 100;
const width = 16;

/** Edits Applications of all agents in turn, at a steady pace: each another one, as long as there are so many. */
export async function editSome(
  { cluster: { client } }: Hub,
  agents: readonly string[],
  { perAgent, count }: { perAgent: number; count: number },
): Promise<void> {
  const began = performance.now();
  await inParallel(Array(count).keys(), width, async (index) => {
    await sleep(Math.max(0, began + (index / perSecond) * 1000 - performance.now()));
    const namespace = agents[index % agents.length] ?? '';
    const name = applicationName(Math.floor(index / agents.length) % perAgent);
    const targetRevision = `edit-${index}-${Date.now()}`;
    await client.mergePatch(pairApplications, { namespace, name }, { spec: { source: { targetRevision } } });
  });
}
