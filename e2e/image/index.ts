export { type ArchiveRequest, archiveImage, archivingEngines, type ImageArchive } from './archive.ts';
export { makeBase, useBase } from './base.ts';
export { withEngineFlags } from './command-line.ts';
export { type Commit, headCommit } from './commit.ts';
export {
  buildCommand,
  type EngineName,
  engineNames,
  findEngine,
  NoEngineError,
  type Runner,
  runCommand,
} from './engine.ts';
