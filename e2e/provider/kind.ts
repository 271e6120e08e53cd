import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { KubeClient } from '../../lib/kube/index.ts';
import {
  addonRelease,
  type FleetOptions,
  type Place,
  releaseNamespace,
  type SharedFleet,
  type SharedMember,
} from '../fleet/index.ts';
import { startGitServer } from '../git/index.ts';
import { addonChart, helm, installHubArgoCd } from '../hub/index.ts';
import { runCommand } from '../image/index.ts';
import { ocmManagedClusters } from '../ocm/index.ts';
import { removeFolder } from '../testbed/index.ts';
import { KindMachine } from './kind-machine.ts';
import { checkKind } from './requirements.ts';

const project = new URL('../..', import.meta.url).pathname;

/**
 * Starts a hub and managed clusters with kind, and OCM on them with clusteradm, up to the point where an operator would
 * type `helm install`. Images of others are pulled by the clusters; this project's is built here and loaded.
 * @throws KindRequirementError when something is missing for it
 */
export async function startKindFleet(options: FleetOptions = {}): Promise<SharedFleet> {
  const { clusters: count = 2, labels = {}, signal } = options;
  const { step = (_, part) => part(), need = () => Promise.resolve() } = options;
  const engine = await checkKind();
  const folder = await mkdtemp(join(tmpdir(), 'kind-'));
  const image = await currentImage();
  // Logs outlive the fleet: they are read when it is gone.
  const logs = process.env.KIND_LOGS || join(tmpdir(), 'kind-logs');
  const machine = new KindMachine({ engine, runner: runCommand, folder, logs, project, image, signal });
  const members = new Map<string, SharedMember>();
  const stops: (() => Promise<unknown>)[] = [() => removeFolder(folder), () => machine.delete()];
  const stop = async () => {
    const errors: unknown[] = [];
    // What cannot be stopped must not keep the rest running.
    for (const end of stops.splice(0).reverse()) {
      await end().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) {
      throw errors[0];
    }
  };
  const create = async (name: string): Promise<Place> => {
    const kubeconfig = await machine.create(name);
    const client = KubeClient.fromKubeconfig(kubeconfig);
    stops.push(() => client.close());
    return { name, client, kubeconfig };
  };
  try {
    await step(`the image, built by ${engine}`, () => machine.build());
    const hub = await step('the hub: a cluster of kind', () => create('hub'));
    const address = await machine.address();
    const git = await startGitServer(join(folder, 'git'), address);
    stops.push(() => git.stop());
    await need('helm');
    await step("Argo CD's API server, application-set controller and Redis on the hub", () =>
      installHubArgoCd(hub, signal),
    );
    await step("OCM's hub, by clusteradm", () => machine.initHub(hub.kubeconfig));
    const enlist = async (name: string, clusterLabels: Record<string, string>) => {
      const cluster = await create(name);
      await machine.join(name, cluster.kubeconfig, hub.kubeconfig);
      await hub.client.mergePatch(ocmManagedClusters, { name }, { metadata: { labels: clusterLabels } });
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
      machine: address,
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
      logs: async () => `the logs of all nodes are in ${await machine.logs()}`,
      stop,
    };
  } catch (error) {
    // Why it did not start is what counts.
    await stop().catch((left: unknown) => console.error(left));
    throw error;
  }
}

/** The image that the chart names when nobody says otherwise. */
async function currentImage(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as { version: string };
  return `quay.io/open-cluster-management/argocd-fleet:${version}`;
}
