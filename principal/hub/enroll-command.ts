import { isDnsLabel } from '../../lib/base/index.ts';
import { command, UsageError } from '../../lib/ops/index.ts';
import { enrollFlags } from './enroll-flags.ts';

/** `argocd-agent enroll NAME`: registers a cluster on the hub and prints the manifest for it. */
export const enrollCommand = command({
  name: 'enroll',
  summary: 'Register a cluster on the hub and print the manifest that installs its agent there',
  arguments: ['NAME'],
  flags: enrollFlags,
  run: async (flags, { signal, stdout, parsed }) => {
    const [name = ''] = parsed.rest;
    const rule = 'a DNS label: lower-case letters, digits and "-", at most 63 characters, first and last no "-"';
    if (!isDnsLabel(name)) {
      throw new UsageError(`NAME ${JSON.stringify(name)} is not ${rule}`);
    }
    if (name === flags.namespace) {
      throw new UsageError(`NAME must not be that of Argo CD's namespace on the hub, ${name}`);
    }
    if (!isDnsLabel(flags['agent-namespace'])) {
      throw new UsageError(`--agent-namespace ${JSON.stringify(flags['agent-namespace'])} is not ${rule}`);
    }
    const { enrollAgent } = await import('./enroll.ts');
    stdout(await enrollAgent(name, flags, signal));
  },
});
