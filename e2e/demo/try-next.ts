import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { guestbookRepository, type Place, type SharedFleet, selectedClusters } from '../fleet/index.ts';
import { onPath, toolPath } from '../tools/index.ts';

/** Something that one may do with the fleet: what it is, and the one command that does it in any shell and folder. */
export interface Suggestion {
  readonly what: string;
  readonly command: string;
}

/**
 * Five things to do with the fleet of the demo once it stays, from the first to the last. The programs in their commands are
 * scripts in the fleet's folder, which know its clusters.
 */
export async function whatToTry(fleet: SharedFleet): Promise<readonly Suggestion[]> {
  const { kubectl, ctl } = await writePrograms(fleet);
  const context = (name: string) => contextOf(fleet.members.get(name)?.cluster);
  const [first, second] = [await context('cluster1'), await context('cluster2')];
  const [label] = Object.entries(selectedClusters).map((pair) => pair.join('='));
  return [
    { what: 'See the fleet, and every change of it, until Ctrl-C', command: `${ctl} status --watch` },
    {
      what: 'Revert the last commit in Git: the clusters follow',
      command: `git -C ${fleet.git.folder(guestbookRepository)} revert --no-edit HEAD`,
    },
    {
      what: 'Follow this change on its way to cluster1',
      command: `${ctl} trace guestbook-cluster1 --agent-context ${first} --follow`,
    },
    {
      what: 'Let cluster3 join again: it gets Argo CD, an agent and its Application',
      command: `${kubectl} label managedcluster cluster3 ${label}`,
    },
    {
      what: 'Stop the agent of cluster2: it is lost until OCM starts the agent again, within half a minute',
      command: `${kubectl} --context ${second} -n argocd scale deployment argocd-agent-agent --replicas=0`,
    },
  ];
}

/** What a cluster is called in its kubeconfig: kind has names of its own. */
async function contextOf(cluster: Place | undefined): Promise<string> {
  const { 'current-context': context } = parse(await readFile(cluster?.kubeconfig ?? '', 'utf8')) as {
    'current-context': string;
  };
  return context;
}

/** Writes scripts that run kubectl, helm and argocd-agentctl with a context for each cluster, the hub's first. */
async function writePrograms({ folder, hub, members }: SharedFleet): Promise<{ kubectl: string; ctl: string }> {
  const kubeconfigs = [hub, ...[...members.values()].map(({ cluster }) => cluster)].map(({ kubeconfig }) => kubeconfig);
  const bin = join(folder, 'bin');
  await mkdir(bin);
  const write = async (name: string, ...command: readonly string[]) => {
    const words = command.map((word) => `'${word}'`).join(' ');
    const text = `#!/bin/sh\nKUBECONFIG='${kubeconfigs.join(':')}' exec ${words} "$@"\n`;
    const file = join(bin, name);
    await writeFile(file, text, { mode: 0o700 });
    return file;
  };
  const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const installed = onPath('kubectl');
  await write('helm', await toolPath('helm'));
  return {
    kubectl: await write('kubectl', ...(installed ? [installed] : [process.execPath, source('kubectl.ts')])),
    ctl: await write('argocd-agentctl', process.execPath, source('../../bin/argocd-agentctl.ts')),
  };
}
