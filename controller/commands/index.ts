export { applyCrdsCommand } from './apply-crds.ts';
export { cleanUp } from './clean-up.ts';
export { controllerCommand } from './controller.ts';
export { renderCommand } from './render.ts';
export { adoptCommand, releaseCommand } from './takeover.ts';
export { uninstallCommand } from './uninstall.ts';
