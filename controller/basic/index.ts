export { basicCommand } from './command.ts';
