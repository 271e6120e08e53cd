import { configMaps } from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { asFatal, ctlManager, names } from '../authority.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { inFormat, outputFlag } from '../output.ts';

/** The commands about certificates that may not be used any more. */
export const blocklistCommands = [
  ctlCommand({
    name: 'blocklist tls add',
    summary: 'Block a certificate: its agent is disconnected at once',
    arguments: ['FINGERPRINT'],
    flags: {},
    run: async (_, ctl) => {
      const [fingerprint = ''] = ctl.args;
      checkFingerprint(fingerprint);
      if ((await blocked(ctl)).includes(fingerprint)) {
        ctl.print('Fingerprint already in blocklist.\n');
        return;
      }
      // Only this key is written: whoever adds another one at the same time loses nothing.
      await apply(ctl, { [fingerprint]: '' });
      ctl.print(`Added to blocklist: ${fingerprint}\n`);
    },
  }),
  ctlCommand({
    name: 'blocklist tls remove',
    summary: 'Let a certificate be used again',
    arguments: ['FINGERPRINT'],
    flags: {},
    run: async (_, ctl) => {
      const [fingerprint = ''] = ctl.args;
      if (!(await blocked(ctl)).includes(fingerprint)) {
        ctl.print('Fingerprint not found in blocklist.\n');
        return;
      }
      await apply(ctl, { [fingerprint]: null });
      ctl.print(`Removed from blocklist: ${fingerprint}\n`);
    },
  }),
  ctlCommand({
    name: 'blocklist tls list',
    summary: 'List the blocked certificates',
    flags: { output: outputFlag() },
    run: async ({ output }, ctl) => {
      const found = (await blocked(ctl)).sort();
      const text = () =>
        found.length === 0 ? 'No entries in the blocklist.\n' : `${['FINGERPRINT', ...found].join('\n')}\n`;
      ctl.print(inFormat(found, output, text));
    },
  }),
];

/** @throws FatalError for a text that cannot be a key of a ConfigMap */
function checkFingerprint(fingerprint: string): void {
  if (!/^[-._a-zA-Z0-9]{1,253}$/.test(fingerprint)) {
    throw new FatalError(
      `failed to save blocklist: ${JSON.stringify(fingerprint)} is no fingerprint: 64 hexadecimal digits without separators, as argocd-agentctl agent inspect prints them`,
    );
  }
}

async function blocked({ principal, signal }: Ctl): Promise<string[]> {
  const { client, namespace } = principal();
  const found = await client
    .get(configMaps, { namespace, name: names.blocklist }, signal)
    .catch(asFatal('failed to load blocklist'));
  return Object.keys(found?.data ?? {});
}

async function apply({ principal, signal }: Ctl, data: Record<string, string | null>): Promise<void> {
  const { client, namespace } = principal();
  const key = { namespace, name: names.blocklist };
  const save = asFatal('failed to save blocklist');
  const live = await client.get(configMaps, key, signal).catch(save);
  if (live === undefined) {
    await client
      .create(configMaps, { metadata: key, data: data as Record<string, string> }, { fieldManager: ctlManager, signal })
      .catch(save);
  } else {
    await client.mergePatch(configMaps, key, { data }, { fieldManager: ctlManager, signal }).catch(save);
  }
}
