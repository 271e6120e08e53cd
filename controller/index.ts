export { basicCommand } from './basic/index.ts';
export { applyCrdsCommand } from './commands/apply-crds.ts';
export { controllerCommand } from './commands/controller.ts';
export { renderCommand } from './commands/render.ts';
export { uninstallCommand } from './commands/uninstall.ts';
