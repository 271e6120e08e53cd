export { type ArgoCdAddress, ArgoCdApi, ArgoCdError, adminPassword, argoCdAddress } from './api.ts';
export { ArgoCdCli, type CliResult } from './cli.ts';
export { applyDeliveredArgoCd } from './delivered.ts';
export { ArgoCdTerminal } from './terminal.ts';
