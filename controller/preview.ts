import { readFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { KubeClient, type KubeLogger, type KubeObject, keyOf } from '../lib/kube/index.ts';
import { command, createLogger, FatalError, UsageError } from '../lib/ops/index.ts';
import { Applier } from './applier.ts';
import { Caches } from './caches.ts';
import { ownerMetadataOf } from './cluster-context.ts';
import { renderCluster } from './cluster-works.ts';
import { discoverEndpoint } from './discovery.ts';
import { renderFlags } from './flags.ts';
import type { Foundation } from './fleet-state.ts';
import { connectionOf, deliveryOf } from './main.ts';
import { workName } from './names.ts';
import { Templates } from './render/templates.ts';
import { type GitOpsCluster, gitOpsClusters, type ManifestWork } from './resources.ts';
import { parseGitOpsCluster } from './spec.ts';

/** Shows what a managed cluster would get, without writing anything. Keys and passwords are placeholders. */
export const renderCommand = command({
  name: 'render',
  summary: 'Print the ManifestWorks that a managed cluster would get',
  flags: renderFlags,
  run: async (flags, { signal, stdout }) => {
    if (!flags.cluster) throw new UsageError('--cluster must name a managed cluster');
    const client = KubeClient.load(connectionOf(flags));
    const stop = new AbortController();
    const logger = createLogger({ level: 'error' });
    const caches = new Caches(client, logger);
    const running = caches.run(AbortSignal.any([signal, stop.signal]));
    try {
      await caches.synced(AbortSignal.any([signal, AbortSignal.timeout(30_000)]));
      const gitOpsCluster = flags.file ? await fromFile(flags.file) : fromHub(caches, flags.namespace, flags.name);
      const foundation = foundationOf(gitOpsCluster, caches);
      const works = renderCluster(
        { ...contextOf(caches, client, logger, flags.cluster, foundation, signal), delivery: deliveryOf(flags) },
        {
          clientCertificate: placeholder,
          authority: undefined,
          redisPassword: '(generated)',
          serverSecretKey: '(generated)',
        },
      );
      const objects = works.map(({ part, index, spec }) => ({
        apiVersion: 'work.open-cluster-management.io/v1',
        kind: 'ManifestWork',
        metadata: { namespace: flags.cluster, name: workName(part, index) },
        spec: flags['show-secrets'] ? spec : withoutSecrets(spec),
      }));
      stdout(objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n'));
    } finally {
      stop.abort();
      await running;
      await client.close();
    }
  },
});

const placeholder = { certificate: '(issued by the controller)', key: '(made by the controller)' };

async function fromFile(file: string): Promise<GitOpsCluster> {
  const object = parse(await readFile(file, 'utf8')) as KubeObject | null;
  if (object?.kind !== gitOpsClusters.kind) throw new UsageError(`--file: ${file} holds no GitOpsCluster`);
  return { ...object, metadata: { namespace: 'argocd', ...object.metadata } };
}

function fromHub(caches: Caches, namespace: string, name: string): GitOpsCluster {
  const found = caches.gitOpsClusters.list(namespace).filter(({ metadata }) => !name || metadata.name === name);
  const [only, ...others] = found;
  if (only === undefined)
    throw new FatalError(`there is no GitOpsCluster ${name ? `${namespace}/${name}` : `in namespace ${namespace}`}`);
  if (others.length > 0) {
    throw new UsageError(`--name must say which: ${found.map(({ metadata }) => metadata.name).join(', ')}`);
  }
  return only;
}

function foundationOf(gitOpsCluster: GitOpsCluster, caches: Caches): Foundation {
  const namespace = gitOpsCluster.metadata.namespace ?? '';
  const spec = parseGitOpsCluster(gitOpsCluster);
  const problem = spec.server.problem ?? spec.addOn.problem;
  if (spec.server.problem !== undefined || spec.addOn.problem !== undefined) throw new FatalError(problem ?? '');
  const endpoint = discoverEndpoint(spec.server.value, caches.principalService(namespace), [], namespace);
  if ('problem' in endpoint) throw new FatalError(endpoint.problem);
  return {
    key: keyOf(gitOpsCluster),
    gitOpsCluster,
    namespace,
    placement: spec.placement.value ?? '',
    authority: placeholder,
    authorities: '(the CA)',
    addOn: spec.addOn.value,
    endpoint,
  };
}

function contextOf(
  caches: Caches,
  client: KubeClient,
  logger: KubeLogger,
  cluster: string,
  foundation: Foundation,
  signal: AbortSignal,
) {
  return {
    caches,
    client,
    applier: new Applier(client),
    logger,
    cluster,
    foundation,
    templates: new Templates(),
    now: new Date(),
    signal,
    ownerMetadata: ownerMetadataOf(foundation.key, cluster),
    renewAt: Number.POSITIVE_INFINITY,
  };
}

function withoutSecrets(spec: ManifestWork['spec']): ManifestWork['spec'] {
  const manifests = spec.workload.manifests.map((object) => {
    const { data } = object as KubeObject & { data?: Record<string, string> };
    if (object.kind !== 'Secret' || !data) return object;
    return { ...object, data: Object.fromEntries(Object.keys(data).map((key) => [key, '(hidden)'])) };
  });
  return { ...spec, workload: { manifests } };
}
