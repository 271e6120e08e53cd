import { builtProject } from './build.ts';
import { buildVariable } from './command.ts';

/** Set-up of a tier: its tests run the programs of one build. */
export default async function setup(): Promise<void> {
  process.env[buildVariable] = await builtProject();
}
