export { bearerTokenFrom } from './bearer-token.ts';
export { certificateMetrics } from './certificate-metrics.ts';
export { between, httpUrl, notNegative, oneOf, optionalPort, positive } from './checks.ts';
export {
  type Command,
  type CommandContext,
  command,
  commandHelp,
  commandLoggers,
  type Executable,
  type ExecutableOptions,
  executableHelp,
  runExecutable,
} from './command.ts';
export { type CommandGroup, childrenOf, findCommand } from './command-tree.ts';
export { type CommonDefaults, commonFlags } from './common-flags.ts';
export { type Detail, type DetailCategory, detailOf, parseDetail } from './detail.ts';
export { formatDuration, parseDuration } from './duration.ts';
export { describeError, ExitError, FatalError, InterruptedError, UsageError } from './errors.ts';
export { type WatchedCertificate, watchCertificates } from './expiring-certificates.ts';
export {
  boolFlag,
  durationFlag,
  type Flag,
  type FlagOptions,
  type FlagSet,
  type FlagValues,
  intFlag,
  listFlag,
  type ParsedFlags,
  type ParseOptions,
  parseFlags,
  stringFlag,
} from './flags.ts';
export {
  eventMessage,
  eventSinkFlags,
  type FleetEventType,
  type FleetNotifications,
  type FleetReporter,
  fleetEventPrefix,
  fleetEvents,
} from './fleet-events.ts';
export { grpcMetrics } from './grpc-metrics.ts';
export { type Health, type HttpEndpoint, serveHealth, serveMetrics } from './http.ts';
export { HttpSink, type HttpSinkOptions, type SinkRequest } from './http-sink.ts';
export { type Instruments, instruments } from './instruments.ts';
export {
  createLogger,
  createLoggers,
  type LogComponent,
  type LoggerOptions,
  type Loggers,
  type ProgramLogger,
} from './log.ts';
export { outcomeOf, runMain } from './main.ts';
export { createRegistry, kubeRequestMetrics } from './metrics.ts';
export { parseFormerKeys, parseKeyPair, parseSigningKey, parseTrust, type TlsKeyPair } from './pem.ts';
export { escapedSteering, printable, printableLines } from './printable.ts';
export { serveProfiles } from './profiling.ts';
export { queueMetrics } from './queue-metrics.ts';
export {
  decodeSecret,
  followFiles,
  followSecret,
  followSecretWith,
  Reloadable,
  type TextFields,
} from './reloadable.ts';
export { type VersionInfo, versionCommand, versionInfo } from './version.ts';
export { printYaml } from './yaml.ts';
