export { controllerCommand } from './main.ts';
export { renderCommand } from './preview.ts';
export { uninstallCommand } from './uninstall.ts';
