export { type ProviderName, providerNames, startTestFleet, testProvider } from './choice.ts';
export { startKindFleet } from './kind.ts';
export { checkKind, KindRequirementError } from './requirements.ts';
