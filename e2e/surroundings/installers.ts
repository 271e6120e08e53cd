import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { helm } from '../hub/index.ts';
import { Kubectl, type Said } from '../live/index.ts';
import type { SharedCluster } from '../testbed/index.ts';
import type { ChartValues } from './charts.ts';
import { nameOf } from './objects.ts';

/** A chart with values that is to be on a cluster. */
export interface WantedRelease {
  readonly name: string;
  readonly namespace: string;
  /** Folder of the chart. */
  readonly chart: string;
  readonly values: ChartValues;
}

/** How somebody brings a chart to one cluster. */
export interface Installer {
  /** Whether it renders charts without looking at the cluster. */
  readonly isBlind: boolean;
  /** Installs, or upgrades what is there. */
  apply(wanted: WantedRelease): Promise<void>;
  /** Goes back to what was there before the last change. */
  rollBack(former: WantedRelease): Promise<void>;
  remove(): Promise<void>;
}

/** Where an installer works. */
export interface InstallerOptions {
  readonly cluster: SharedCluster;
  /** For its files. */
  readonly folder: string;
  /** `--api-versions` of `helm template`. */
  readonly apiVersions: readonly string[];
}

/** `helm upgrade --install`, `helm rollback` and `helm uninstall` of a major version. */
export function helmInstaller({ cluster, folder }: InstallerOptions, major?: 3): Installer {
  const run = async (command: string, { name, namespace }: WantedRelease, ...args: string[]) => {
    const options = { kubeconfig: cluster.kubeconfig, ...(major && { major }) };
    await helm([command, name, ...args, '--namespace', namespace, '--timeout', '90s'], options);
  };
  let current: WantedRelease | undefined;
  return {
    isBlind: false,
    async apply(wanted) {
      const values = ['--values', await valuesFile(folder, wanted)];
      const how = current === undefined ? ['install', '--create-namespace'] : ['upgrade', '--reset-values'];
      const [command = '', ...flags] = how;
      await run(command, wanted, wanted.chart, ...flags, ...values);
      current = wanted;
    },
    async rollBack(former) {
      await run('rollback', former);
      current = former;
    },
    async remove() {
      await run('uninstall', current as WantedRelease);
    },
  };
}

/** `helm template` with `kubectl apply`, as docs/install.md says it. */
export async function kubectlInstaller(options: InstallerOptions, ...flags: string[]): Promise<Installer> {
  const { cluster, folder, apiVersions } = options;
  const kubectl = await Kubectl.prepare(cluster.kubeconfig, folder);
  const must = async (said: Promise<Said>) => {
    const { code, stderr } = await said;
    if (code !== 0) {
      throw new Error(`kubectl: ${stderr}`);
    }
  };
  const render = async (wanted: WantedRelease, ...args: string[]) =>
    await helm([
      ...['template', wanted.name, wanted.chart, '--namespace', wanted.namespace, '--no-hooks'],
      ...['--values', await valuesFile(folder, wanted)],
      ...apiVersions.flatMap((version) => ['--api-versions', version]),
      ...args,
    ]);
  let current: WantedRelease | undefined;
  const apply = async (wanted: WantedRelease) => {
    if (current === undefined) {
      await kubectl.run(['create', 'namespace', wanted.namespace]);
    }
    const crds = join(wanted.chart, 'crds');
    if (wanted.name === 'argocd-agent-addon') {
      await must(kubectl.run(['apply', ...flags, '-f', crds]));
    }
    const text = await render(wanted);
    await must(kubectl.run(['apply', ...flags, '-f', '-'], text));
    if (current !== undefined) {
      // kubectl removes nothing that is not rendered any more.
      const now = new Set(objectsIn(text).map(nameOf));
      const gone = objectsIn(await render(current)).filter((object) => !now.has(nameOf(object)));
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: gone });
      await must(kubectl.run(['delete', '--ignore-not-found', '-f', '-'], list));
    }
    current = wanted;
  };
  return {
    isBlind: true,
    apply,
    rollBack: apply,
    async remove() {
      const wanted = current as WantedRelease;
      const hasFleets = wanted.name === 'argocd-agent-addon';
      if (hasFleets) {
        await must(kubectl.run(['delete', 'gitopsclusters', '--all', '--all-namespaces']));
      }
      const text = await render(wanted, ...(hasFleets ? ['--set', 'hubArgoCD.crds=false'] : []));
      const kept = 'app.kubernetes.io/component!=namespace';
      await must(kubectl.run(['delete', '--ignore-not-found', '-l', kept, '-f', '-'], text));
    },
  };
}

function objectsIn(text: string): KubeObject[] {
  const all = parseAllDocuments(text).map((document) => document.toJS() as KubeObject | null);
  return all.filter((object): object is KubeObject => object !== null);
}

async function valuesFile(folder: string, { name, values }: WantedRelease): Promise<string> {
  const file = join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify(values));
  return file;
}
