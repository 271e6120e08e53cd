import { wellKnown } from '../../lib/base/index.ts';
import { secrets } from '../../lib/kube/index.ts';
import type { Command, Executable } from '../../lib/ops/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import { completionScript, type NameKind, nameKinds, shells } from '../completion.ts';
import { ctlCommand, type Side } from '../ctl-command.ts';

/** `completion SHELL`, for each shell, and what their scripts ask for. `executable` is asked for when it runs: it holds these, too. */
export function completionCommands(executable: () => Executable): Command[] {
  const scripts = shells.map(
    (shell) =>
      ctlCommand({
        name: `completion ${shell}`,
        summary: `Print the script that completes commands, flags and names in ${shell}`,
        ignoresConfig: true,
        flags: {},
        run: async (_, { print }) => print(completionScript(executable(), shell, 'argocd-agentctl')),
      }) as unknown as Command,
  );
  const names = nameKinds.map(
    (kind) =>
      ctlCommand({
        name: `completion names ${kind}`,
        summary: `Print the names of the hub's ${kind}, for these scripts`,
        flags: {},
        run: async (_, { principal, print, signal }) => {
          const found = await namesOf[kind](principal(), signal);
          print(
            [...new Set(found)]
              .sort()
              .map((name) => `${name}\n`)
              .join(''),
          );
        },
      }) as unknown as Command,
  );
  return [...scripts, ...names];
}

/** More names than this nobody reads, and a shell that completes does not wait for. */
const mostNames = 1_000;

const namesOf: Readonly<Record<NameKind, (side: Side, signal: AbortSignal) => Promise<string[]>>> = {
  agents: async ({ client, namespace }, signal) => {
    const labelSelector = wellKnown.agentNameLabel;
    const options = { namespace, labelSelector, limit: mostNames, metadataOnly: true, signal };
    const { items } = await client.listPage(secrets, options);
    return items.map(({ metadata }) => metadata.labels?.[wellKnown.agentNameLabel] ?? '');
  },
  applications: async ({ client }, signal) => {
    const { items } = await client.listPage(shownApplications, { limit: mostNames, metadataOnly: true, signal });
    return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  },
};
