export { cacheFolder } from './cache.ts';
export { type ToolName, toolNames } from './catalogue.ts';
export { ToolError } from './error.ts';
export { gitNeeded, hasGit } from './git.ts';
export { withFileLock } from './lock.ts';
export { moduleFolder } from './module.ts';
export { onPath } from './on-path.ts';
export { getTool, getTools, type Tool, type ToolOptions, toolPath } from './tool.ts';
