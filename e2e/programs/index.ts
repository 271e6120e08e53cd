export { builtProject } from './build.ts';
export { type ProgramName, programCommand } from './command.ts';
