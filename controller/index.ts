export { applyCrdsCommand } from './apply-crds.ts';
export { basicCommand } from './basic/index.ts';
export { controllerCommand } from './main.ts';
export { renderCommand } from './preview.ts';
export { uninstallCommand } from './uninstall.ts';
