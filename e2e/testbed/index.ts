export { type ProcessExit, SpawnError, type SpawnOptions, type SupervisedProcess, spawnSupervised } from './process.ts';
