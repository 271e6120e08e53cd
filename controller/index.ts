export { basicCommand } from './basic/index.ts';
export {
  adoptCommand,
  applyCrdsCommand,
  controllerCommand,
  releaseCommand,
  renderCommand,
  uninstallCommand,
} from './commands/index.ts';
