export { startKindFleet } from './kind.ts';
export { checkKind, KindRequirementError } from './requirements.ts';
