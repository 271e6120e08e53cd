export { type BuildOptions, type BuiltTool, buildTool, toolPath } from './build.ts';
export { type ToolName, toolNames } from './catalogue.ts';
export { ToolError } from './error.ts';
export { moduleFolder } from './module.ts';
