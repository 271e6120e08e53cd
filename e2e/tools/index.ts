export { type BuildOptions, type BuiltTool, buildTool, cacheFolder, toolPath } from './build.ts';
export { type ToolName, toolNames } from './catalogue.ts';
export { ToolError } from './error.ts';
export { withFileLock } from './lock.ts';
export { moduleFolder } from './module.ts';
export { onPath } from './on-path.ts';
