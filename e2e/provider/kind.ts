import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { KubeClient } from '../../lib/kube/index.ts';
import { addonRelease, type FleetOptions, type Place, releaseNamespace, type SharedFleet } from '../fleet/index.ts';
import { startGitServer } from '../git/index.ts';
import { addonChart, helm, installHubArgoCd } from '../hub/index.ts';
import { buildCommand, runCommand } from '../image/index.ts';
import { managedClusters } from '../ocm/index.ts';
import { removeFolder } from '../testbed/index.ts';
import { type CommandLine, internalServer, kindCommands, parseToken } from './kind-commands.ts';

const project = new URL('../..', import.meta.url).pathname;

/**
 * Starts a hub and managed clusters with kind, and OCM on them with clusteradm, up to the point where an operator would
 * type `helm install`. Images of others are pulled by the clusters; this project's is built here and loaded.
 */
export async function startKindFleet(options: FleetOptions = {}): Promise<SharedFleet> {
  const { clusters: count = 2, labels = {}, step = (_, part) => part(), signal } = options;
  const folder = await mkdtemp(join(tmpdir(), 'kind-'));
  const members = new Map<string, { cluster: Place }>();
  const stops: (() => Promise<unknown>)[] = [() => removeFolder(folder)];
  const stop = async () => {
    for (const end of stops.reverse()) await end();
  };
  const execute = async ([command, ...args]: CommandLine) => {
    signal?.throwIfAborted();
    return await runCommand(command, args);
  };
  const image = await currentImage();
  const create = async (name: string): Promise<Place> => {
    const kubeconfig = join(folder, `${name}.kubeconfig`);
    stops.push(() => runCommand('kind', kindCommands.delete(name).slice(1)));
    await execute(kindCommands.create(name, kubeconfig));
    await execute(kindCommands.load(image, name));
    const client = KubeClient.fromKubeconfig(kubeconfig);
    stops.push(() => client.close());
    return { name, client, kubeconfig };
  };
  try {
    await step('the image, built by docker', async () => {
      const request = { engine: 'docker', tag: image, revision: 'kind', date: new Date().toISOString() } as const;
      const { command, args } = buildCommand({ ...request, folder: project });
      await execute([command, ...args]);
    });
    const hub = await step('the hub: a cluster of kind', () => create('hub'));
    const [gateway = '127.0.0.1'] = (await execute(kindCommands.gateway())).split(/\s+/).filter(isIPv4);
    const git = await startGitServer(join(folder, 'git'), gateway);
    stops.push(() => git.stop());
    await step("Argo CD's API server, application-set controller and Redis on the hub", () =>
      installHubArgoCd(hub, signal),
    );
    await step("OCM's hub, by clusteradm", () => execute(kindCommands.initHub(hub.kubeconfig)));
    const enlist = async (name: string, clusterLabels: Record<string, string>) => {
      const cluster = await create(name);
      const { token } = parseToken(await execute(kindCommands.token(hub.kubeconfig)));
      await execute(kindCommands.join(name, cluster.kubeconfig, { apiServer: internalServer('hub'), token }));
      await execute(kindCommands.accept(name, hub.kubeconfig));
      await hub.client.mergePatch(managedClusters, { name }, { metadata: { labels: clusterLabels } });
      const member = { cluster };
      members.set(name, member);
      return member;
    };
    // One after the other: kind's nodes share this machine's memory while they start.
    for (let n = 1; n <= count; n++) {
      await step(`cluster${n}: a cluster of kind, joined by clusteradm`, () => enlist(`cluster${n}`, labels));
    }
    const hubHelm = (...args: string[]) => helm(args, { kubeconfig: hub.kubeconfig, ...(signal && { signal }) });
    return {
      hub,
      members,
      git,
      folder,
      helm: hubHelm,
      async install(values = {}) {
        const file = join(folder, 'values.yaml');
        // kind has no load balancers; its nodes reach each other.
        await writeFile(file, stringify({ principalServiceType: 'NodePort', ...values }));
        const where = ['--namespace', releaseNamespace, '--create-namespace', '--values', file];
        return await hubHelm('install', addonRelease, addonChart, ...where);
      },
      join: enlist,
      logs: async (lines = 40) =>
        await runCommand('kind', ['export', 'logs', '--name', 'hub', join(folder, 'logs')]).then(
          () => `the last ${lines} lines and more: ${join(folder, 'logs')}`,
        ),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The image that the chart names when nobody says otherwise. */
async function currentImage(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as { version: string };
  return `quay.io/open-cluster-management/argocd-fleet:${version}`;
}

const isIPv4 = (text: string) => /^\d+\.\d+\.\d+\.\d+$/.test(text);
