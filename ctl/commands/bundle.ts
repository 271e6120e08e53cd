import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { tarOf } from '../../lib/base/index.ts';
import { FatalError, stringFlag, versionInfo } from '../../lib/ops/index.ts';
import { collect } from '../bundle/collect.ts';
import { ctlCommand } from '../ctl-command.ts';

/** `bundle`: everything that a supporter needs, in one archive. */
export const bundleCommand = ctlCommand({
  name: 'bundle',
  summary: 'Write one archive with everything that a supporter needs, without secrets',
  description:
    'Objects of the namespace, Applications, conditions, Events, logs, and what doctor finds; with CLUSTER and --agent-context\nof the cluster, too. Of Secrets only names, sizes and certificates are in it. Look into it before you send it.',
  arguments: ['[CLUSTER]'],
  flags: { 'output-file': stringFlag({ usage: 'file to write; default: argocd-agent-TIME.tar.gz' }) },
  run: async (flags, ctl) => {
    const [cluster = ''] = ctl.args;
    const now = new Date();
    const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '');
    const path = flags['output-file'] || `argocd-agent-${stamp}.tar.gz`;
    // Loaded when it runs: other commands start faster without it.
    const { examine } = await import('../doctor/examine.ts');
    const found = await examine(ctl, { cluster, address: '' });
    const hub = await collect(ctl.principal(), 'hub', ctl.signal);
    const agent = ctl.targets.agent.context === '' ? [] : await collect(ctl.agent(), 'agent', ctl.signal);
    const about = { madeAt: now.toISOString(), tool: versionInfo('argocd-agentctl'), targets: ctl.targets };
    const files = [
      { path: 'about.json', content: JSON.stringify(about, undefined, 2) },
      { path: 'findings.json', content: JSON.stringify(found, undefined, 2) },
      ...hub,
      ...agent,
    ];
    const archive = await promisify(gzip)(tarOf(files, now));
    // Never over another file, and for its owner alone.
    await writeFile(path, archive, { mode: 0o600, flag: 'wx' }).catch((cause: unknown) => {
      const { code, message } = cause as NodeJS.ErrnoException;
      const reason = code === 'EEXIST' ? 'it exists; give another --output-file' : message;
      throw new FatalError(`${path} cannot be written: ${reason}`, { cause });
    });
    ctl.print(`${path}: ${files.length} files, ${Math.ceil(archive.length / 1024)} KiB\n`);
  },
});
