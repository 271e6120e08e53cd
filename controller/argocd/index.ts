export { type ArgoCdDeps, configureArgoCd, RestartRefusedError } from './configure.ts';
export { namespacesRequirement, type ParameterRequirement, redisRequirement } from './requirements.ts';
