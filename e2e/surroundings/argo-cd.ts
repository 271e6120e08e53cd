import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../lib/base/testing.ts';
import { namespaces, secrets } from '../../lib/kube/index.ts';
import { applyDeliveredArgoCd } from '../argocd/index.ts';
import { fleetApplications, fleetAppProjects } from '../fleet/index.ts';
import { type GitServer, startGitServer } from '../git/index.ts';
import { argoCdCrds, installCrds } from '../hub/index.ts';
import { startNode } from '../node/index.ts';
import { type Cluster, type SharedCluster, startCluster } from '../testbed/index.ts';
import type { Installer, WantedRelease } from './installers.ts';

const namespace = 'argocd';
const everything = [{ namespace: '*', server: '*' }];

/** What is read of an Application. */
interface Seen {
  operation?: object;
  spec?: { source?: { helm?: { values?: string } } };
  status?: {
    operationState?: {
      phase?: string;
      message?: string;
      syncResult?: {
        resources?: { kind: string; name: string; status?: string; hookPhase?: string; message?: string }[];
      };
      operation?: { info?: { value: string }[] };
    };
    sync?: { status?: string; comparedTo?: { source?: { helm?: { values?: string } } } };
    resources?: { kind: string; name: string; status?: string; requiresPruning?: boolean }[];
    conditions?: { message: string }[];
  };
}

/** An Argo CD on a cluster of its own, which deploys charts from Git to other clusters. */
export class DeployingArgoCd {
  readonly #cluster: Cluster;
  readonly #git: GitServer;
  readonly #stops: (() => Promise<unknown>)[];
  readonly #repositories = new Map<string, string>();
  #count = 0;

  private constructor(cluster: Cluster, git: GitServer, stops: (() => Promise<unknown>)[]) {
    this.#cluster = cluster;
    this.#git = git;
    this.#stops = stops;
  }

  /** Starts cluster, node, Git server and Argo CD's programs. They find each other by themselves. */
  static async start(folder: string): Promise<DeployingArgoCd> {
    const stops: (() => Promise<unknown>)[] = [];
    const cluster = await startCluster({ name: 'argo-cd' });
    stops.push(() => cluster.stop());
    const node = await startNode({ cluster, dir: join(folder, 'node') });
    stops.push(() => node.stop());
    const git = await startGitServer(join(folder, 'git'));
    stops.push(() => git.stop());
    const { client } = cluster;
    await installCrds(client, await argoCdCrds());
    await client.create(namespaces, { metadata: { name: namespace } }).catch(() => undefined);
    await applyDeliveredArgoCd(client, namespace);
    const spec = {
      sourceRepos: ['*'],
      destinations: everything,
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    };
    await client.create(fleetAppProjects, { metadata: { namespace, name: 'default' }, spec });
    return new DeployingArgoCd(cluster, git, stops);
  }

  /** Brings charts to a cluster: an Application with the finalizer that removes what it has deployed. */
  async installer(target: SharedCluster): Promise<Installer> {
    const { client } = this.#cluster;
    this.#count += 1;
    const key = { namespace, name: `chart-${this.#count}` };
    await this.#mayDeployTo(target);
    let runs = 0;
    const seen = async () => (await client.get(fleetApplications, key)) as Seen | undefined;
    const synchronise = async (wanted: WantedRelease) => {
      runs += 1;
      const values = JSON.stringify(wanted.values);
      const source = {
        repoURL: this.#git.url(await this.#repositoryOf(wanted)),
        path: '.',
        targetRevision: 'HEAD',
        helm: { releaseName: wanted.name, values },
      };
      const spec = {
        project: 'default',
        source,
        destination: { server: target.server, namespace: wanted.namespace },
        // As docs/install.md says it.
        syncPolicy: {
          syncOptions: ['CreateNamespace=true'],
          retry: { limit: 5, backoff: { duration: '5s', maxDuration: '1m' } },
        },
      };
      const info = [{ name: 'run', value: `${runs}` }];
      // Argo CD's API server adds what the Application says; nobody adds it to an operation that is written directly.
      const { syncOptions, retry } = spec.syncPolicy;
      const operation = { sync: { prune: true, syncOptions }, retry, info, initiatedBy: { username: 'test' } };
      const finalizers = ['resources-finalizer.argocd.argoproj.io'];
      await (runs === 1
        ? client.create(fleetApplications, { metadata: { ...key, finalizers }, spec, operation } as never)
        : client.mergePatch(fleetApplications, key, { spec, operation }));
      const done = await until(
        `Argo CD has synchronised ${wanted.name}`,
        async () => {
          const state = (await seen())?.status?.operationState;
          const isOurs = state?.operation?.info?.[0]?.value === `${runs}`;
          return isOurs && state?.phase !== 'Running' && state;
        },
        { details: () => last },
      );
      if (done.phase !== 'Succeeded') {
        const failed = done.syncResult?.resources?.filter(({ hookPhase }) => hookPhase !== 'Succeeded');
        throw new Error(`Argo CD: ${done.message}: ${JSON.stringify(failed).slice(0, 3_000)}`);
      }
      await client.mergePatch(fleetApplications, key, {
        metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } },
      });
      await until(
        `${wanted.name} is Synced`,
        async () => {
          const application = await seen();
          const { sync, resources = [] } = application?.status ?? {};
          last = JSON.stringify(resources.filter(({ status }) => status !== 'Synced'));
          const isCompared = sync?.comparedTo?.source?.helm?.values === values;
          const annotations = (application as { metadata?: { annotations?: object } })?.metadata?.annotations ?? {};
          return isCompared && !('argocd.argoproj.io/refresh' in annotations) && sync?.status === 'Synced';
        },
        { details: () => last },
      );
    };
    let last = '';
    return {
      isBlind: true,
      apply: synchronise,
      rollBack: synchronise,
      async remove() {
        await client.delete(fleetApplications, key);
        await until('the Application is gone', async () => {
          const application = await seen();
          last = JSON.stringify(application?.status?.conditions);
          return application === undefined;
        });
      },
    };
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.toReversed()) {
      await stop();
    }
  }

  /** A cluster that has been here before was restored since: Argo CD forgets what it had with the Secret. */
  async #mayDeployTo({ server, ca, issueCertificate }: SharedCluster): Promise<void> {
    const { certificate, key } = await issueCertificate({ commonName: 'argo-cd', organizations: ['system:masters'] });
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const tlsClientConfig = { caData: base64(ca), certData: base64(certificate), keyData: base64(key) };
    const name = `cluster-${new URL(server).port}`;
    const { client } = this.#cluster;
    await client.delete(secrets, { namespace, name });
    await client.create(secrets, {
      metadata: { namespace, name, labels: { 'argocd.argoproj.io/secret-type': 'cluster' } },
      stringData: { name, server, config: JSON.stringify({ tlsClientConfig }) },
    });
  }

  /** The Git repository with a chart. */
  async #repositoryOf({ chart }: WantedRelease): Promise<string> {
    const known = this.#repositories.get(chart);
    if (known !== undefined) {
      return known;
    }
    const name = `chart-${this.#repositories.size}`;
    this.#repositories.set(chart, name);
    await this.#git.commit(name, {}, 'Nothing');
    await cp(chart, this.#git.folder(name), { recursive: true });
    await this.#git.commit(name, {}, 'The chart');
    return name;
  }
}
