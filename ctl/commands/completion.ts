import type { Command, Executable } from '../../lib/ops/index.ts';
import { completionScript, shells } from '../completion.ts';
import { ctlCommand } from '../ctl-command.ts';

/** `completion SHELL`, for each shell. `executable` is asked for when it runs: it holds this command, too. */
export function completionCommands(executable: () => Executable): Command[] {
  return shells.map(
    (shell) =>
      ctlCommand({
        name: `completion ${shell}`,
        summary: `Print the script that completes commands and flags in ${shell}`,
        ignoresConfig: true,
        flags: {},
        run: async (_, { print }) => print(completionScript(executable(), shell, 'argocd-agentctl')),
      }) as unknown as Command,
  );
}
