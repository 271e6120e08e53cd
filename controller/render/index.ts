export { type AddOnConfig, noConfig, parseAddOnConfig } from './addon-config.ts';
export { type CleanUpState, cleanedNamespaces, cleanUpState, renderCleanUp } from './cleanup.ts';
export { settingsChecksum, unreadParams } from './cluster-settings.ts';
export { unmatchedContainers } from './decorate.ts';
export { statefulSetFeedback } from './manifest-configs.ts';
export type { OperatorInput } from './operator.ts';
export { type RenderedWork, workParts } from './pack.ts';
export { Renderings } from './renderings.ts';
export { type RenderInput, renderWorks } from './works.ts';
