import { command } from '../lib/ops/index.ts';

export { enrollCommand } from './hub/enroll-command.ts';
export { pkiCommand } from './hub/pki-command.ts';
export { migrateCommand } from './migration/migrate-command.ts';

import { principalFlags } from './flags.ts';

/** `argocd-agent principal`: the hub's side. */
export const principalCommand = command({
  name: 'principal',
  summary: "Run the principal: the hub's side, which agents connect to",
  flags: principalFlags,
  ignoresArguments: true,
  // Loaded when it runs: principal and agent share an executable, and neither carries the other's code.
  run: async (flags, context) => (await import('./run.ts')).runPrincipal(flags, context),
});
