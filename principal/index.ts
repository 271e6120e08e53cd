import { command } from '../lib/ops/index.ts';
import { principalFlags, unsupportedPrincipalFlags } from './flags.ts';
import { runPrincipal } from './run.ts';

/** `argocd-agent principal`: the hub's side. */
export const principalCommand = command({
  name: 'principal',
  summary: "Run the principal: the hub's side, which agents connect to",
  flags: principalFlags,
  unsupported: unsupportedPrincipalFlags,
  run: runPrincipal,
});
