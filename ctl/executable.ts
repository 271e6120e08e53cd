import { boolFlag, type Executable, versionInfo } from '../lib/ops/index.ts';
import { agentCommands } from './commands/agent.ts';
import { blocklistCommands } from './commands/blocklist.ts';
import { bundleCommand } from './commands/bundle.ts';
import { completionCommands } from './commands/completion.ts';
import { configCommands } from './commands/config.ts';
import { principalConformance } from './commands/conformance.ts';
import { agentConformance } from './commands/conformance-agent.ts';
import { doctorCommand } from './commands/doctor.ts';
import { haCommands } from './commands/ha.ts';
import { jwtCommands } from './commands/jwt.ts';
import { pkiCommands } from './commands/pki.ts';
import { statusCommand } from './commands/status.ts';
import { traceCommand } from './commands/trace.ts';
import { validateCommands } from './commands/validate.ts';
import { ctlCommand } from './ctl-command.ts';
import { globalFlags } from './flags.ts';

const versionOfCtl = ctlCommand({
  name: 'version',
  summary: 'Print the version as JSON',
  ignoresConfig: true,
  flags: { indent: boolFlag({ usage: 'on several lines', short: 'i' }) },
  run: async ({ indent }, { print }) => print(`${JSON.stringify(versionInfo(), undefined, indent ? 2 : 0)}\n`),
});

/** The tool, with the name by which it was started. */
export function ctlExecutable(name = 'argocd-agentctl'): Executable {
  const executable: Executable = {
    name,
    summary: 'Configures, watches and mends principals and agents',
    bareExitCode: 1,
    flags: globalFlags,
    groups: [
      { name: 'agent', summary: 'The configuration of agents on the hub', aliases: ['agents'], exitCode: 1 },
      { name: 'config', summary: 'The configuration file of this tool' },
      { name: 'config add', summary: 'Add an entry' },
      { name: 'config edit', summary: 'Change an entry' },
      { name: 'config delete', summary: 'Remove an entry' },
      { name: 'validate', summary: 'Check installations', aliases: ['check-config'] },
      { name: 'pki', summary: "The hub's own certificate authority", exitCode: 1 },
      { name: 'pki issue', summary: 'Issue a certificate', aliases: ['pki new-cert'] },
      { name: 'jwt', summary: 'The key that signs tokens' },
      { name: 'blocklist', summary: 'Certificates that may not be used any more' },
      { name: 'blocklist tls', summary: 'Certificates of agents' },
      { name: 'ha', summary: 'A pair of principals' },
      { name: 'conformance', summary: 'Whether a peer speaks the protocol' },
      { name: 'completion', summary: 'Completion for a shell' },
      { name: 'completion names', summary: 'Names on the hub' },
    ],
    commands: [
      statusCommand,
      doctorCommand,
      traceCommand,
      bundleCommand,
      ...agentCommands,
      ...configCommands,
      ...validateCommands,
      ...pkiCommands,
      ...jwtCommands,
      ...blocklistCommands,
      ...haCommands,
      principalConformance,
      agentConformance,
      ...completionCommands(() => executable),
      versionOfCtl,
    ],
  };
  return executable;
}
