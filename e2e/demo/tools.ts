import { cacheFolder, getTools, type ToolName } from '../tools/index.ts';
import type { Progress } from './progress.ts';

/** The tools of the demo, as far as they have come. */
export interface DemoTools {
  /** Resolves when these are there, and shows it while it waits. @throws ToolError */
  need(...names: readonly ToolName[]): Promise<void>;
}

/** Begins to get the tools that are not in the cache. What has come can be used meanwhile. */
export function makeTools(names: readonly ToolName[], progress: Progress, signal: AbortSignal): DemoTools {
  progress.say(`${names.join(', ')}: downloaded or built at the first run, and kept in ${cacheFolder()}`);
  const coming = new Map<ToolName, Promise<void>>();
  const log = (line: string) => progress.say(line);
  for (const [name, tool] of getTools(names, { signal, log, progress: (line) => progress.passing(line) })) {
    const ready = tool.then(({ origin, seconds }) => {
      coming.delete(name);
      if (origin === 'built' || origin === 'downloaded') {
        progress.say(`${name}: ${origin} in ${seconds.toFixed(0)} s`);
      }
    });
    // Whoever needs the tool is told.
    ready.catch(() => undefined);
    coming.set(name, ready);
  }
  return {
    async need(...needed) {
      const missing = needed.filter((name) => coming.has(name));
      if (missing.length > 0) {
        const all = Promise.all(missing.map((name) => coming.get(name)));
        await progress.step(`${missing.join(', ')}: downloaded, built or in the cache`, () => all);
      }
    },
  };
}
