export { basicCommand } from './basic/index.ts';
export { applyCrdsCommand, controllerCommand, renderCommand, uninstallCommand } from './commands/index.ts';
