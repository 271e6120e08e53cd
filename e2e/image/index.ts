export { makeBase } from './base.ts';
export {
  buildCommand,
  type EngineName,
  engineNames,
  findEngine,
  NoEngineError,
  type Runner,
  runCommand,
} from './engine.ts';
