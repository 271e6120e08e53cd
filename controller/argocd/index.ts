export { type ArgoCdDeps, configureArgoCd, RestartRefusedError } from './configure.ts';
export { readParameter } from './parameters.ts';
export {
  keyPrefixRequirement,
  namespacesRequirement,
  type ParameterRequirement,
  redisRequirement,
  sentinelRequirement,
} from './requirements.ts';
