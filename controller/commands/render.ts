import { KubeClient, type KubeObject, keyOf } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { command, createLogger, FatalError, type FlagValues, printYaml, UsageError } from '../../lib/ops/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { configOf, type DeliveredSecrets, type RenderTarget, renderCluster } from '../cluster/index.ts';
import { connectionOf } from '../daemon/index.ts';
import { discoverEndpoint } from '../endpoint/index.ts';
import {
  Caches,
  deliveredSecretName,
  type GitOpsCluster,
  gitOpsClusters,
  hubNames,
  keys,
  partWorkName,
} from '../hub/index.ts';
import { parseAddOnConfig, type RenderedWork } from '../render/index.ts';
import { type AddOnSettings, type FleetSpec, parseGitOpsCluster, releaseOf, specOnHub } from '../spec/index.ts';
import { planClientCertificate } from '../trust/index.ts';
import { deliveryOf } from './delivery-flags.ts';
import { renderFlags } from './flags.ts';
import { hubOfFiles, readConfig, readGitOpsCluster } from './render-files.ts';

type Flags = FlagValues<typeof renderFlags>;

/** The command that prints the manifests for a managed cluster. It writes nothing. */
export const renderCommand = command({
  name: 'render',
  summary: 'Print the ManifestWorks that a managed cluster would get',
  flags: renderFlags,
  run: async (flags, { signal, stdout }) => {
    if (!flags.cluster) {
      throw new UsageError('--cluster must name a managed cluster');
    }
    if (flags.offline && !flags.gitopscluster) {
      throw new UsageError('--offline needs --gitopscluster FILE');
    }
    const works = flags.offline ? await fromFiles(flags) : await fromHub(flags, signal);
    const shown = works.map((work) => (flags['show-secrets'] ? work : withoutSecrets(work)));
    const objects = flags.manifests ? shown.flatMap(({ spec }) => spec.workload.manifests) : shown.map(workOf(flags));
    stdout(objects.map(printYaml).join('---\n'));
  },
});

/** Placeholders for the generated values of a cluster that is not enrolled. */
const placeholder: DeliveredSecrets = {
  clientCertificate: { certificate: '(issued by the controller)', key: '(made by the controller)' },
  authority: undefined,
  redisPassword: '(generated)',
  serverSecretKey: '(generated)',
};

/** The same for a cluster that requests its certificate. */
const withoutKey: DeliveredSecrets = { ...placeholder, clientCertificate: undefined };

async function fromFiles(flags: Flags): Promise<RenderedWork[]> {
  const gitOpsCluster = await readGitOpsCluster(flags.gitopscluster, flags.namespace);
  const { addOn, server } = valuesOf(parseGitOpsCluster(gitOpsCluster));
  if (!server.address || !server.port) {
    const fields = 'spec.argoCDAgentAddon.principalServerAddress and principalServerPort';
    throw new FatalError(`without a hub the GitOpsCluster must say ${fields}`);
  }
  const delivery = deliveryOf(flags);
  const config = parseAddOnConfig(flags.config ? await readConfig(flags.config, flags.cluster) : undefined);
  if (config.problem !== undefined) {
    throw new FatalError(config.problem);
  }
  const target: RenderTarget = {
    cluster: flags.cluster,
    templates: new Templates(),
    foundation: { key: keyOf(gitOpsCluster), addOn, endpoint: server, authorities: '(the CA)' },
    delivery,
    config: config.value,
    release: releaseOf({ caches: await hubOfFiles(flags.crds), delivery }, flags.namespace, addOn),
  };
  return renderCluster(target, addOn.clientCertificate === 'Generated' ? placeholder : withoutKey);
}

async function fromHub(flags: Flags, signal: AbortSignal): Promise<RenderedWork[]> {
  const fromFile = flags.gitopscluster ? await readGitOpsCluster(flags.gitopscluster, flags.namespace) : undefined;
  const client = KubeClient.load(connectionOf(flags));
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  try {
    const gitOpsCluster = fromFile ?? (await gitOpsClusterOf(client, flags, signal));
    const { namespace: own = '', annotations } = gitOpsCluster.metadata;
    const namespace = flags['argocd-namespace'] || annotations?.[keys.principalNamespace] || own;
    const caches = new Caches({
      client,
      logger: createLogger({ level: 'error' }),
      watchNamespaces: [namespace],
      argoCdNamespace: namespace,
    });
    running = caches.run(AbortSignal.any([signal, stop.signal]));
    await caches.synced(AbortSignal.any([signal, AbortSignal.timeout(30_000)]));
    const obstacle = caches.obstacleTo(gitOpsCluster);
    if (obstacle !== undefined) {
      throw new FatalError(obstacle.message);
    }
    if (!caches.managedClusters.get({ name: flags.cluster })) {
      throw new FatalError(`there is no ManagedCluster ${flags.cluster}, which --cluster names`);
    }
    const delivery = deliveryOf(flags);
    const { addOn, server } = valuesOf(specOnHub({ caches, delivery }, gitOpsCluster));
    const endpoint = discoverEndpoint(server, caches.serviceExposure(namespace), namespace);
    if ('problem' in endpoint) {
      throw new FatalError(endpoint.problem);
    }
    const read = flags.config ? parseAddOnConfig(await readConfig(flags.config, flags.cluster)) : undefined;
    if (read?.problem !== undefined) {
      throw new FatalError(read.problem);
    }
    const target: RenderTarget = {
      cluster: flags.cluster,
      templates: new Templates(),
      foundation: { key: keyOf(gitOpsCluster), addOn, endpoint, authorities: authoritiesOf(caches, namespace) },
      delivery,
      config: read?.value ?? configOf({ caches, cluster: flags.cluster }),
      release: releaseOf({ caches, delivery }, namespace, addOn),
    };
    return renderCluster(target, deliveredTo(caches, namespace, addOn, flags.cluster));
  } finally {
    stop.abort();
    await running;
    await client.close();
  }
}

async function gitOpsClusterOf(
  client: KubeClient,
  { namespace, name }: Pick<Flags, 'namespace' | 'name'>,
  signal: AbortSignal,
): Promise<GitOpsCluster> {
  const all = await client.list(gitOpsClusters, { namespace, signal });
  const found = all.filter(({ metadata }) => !name || metadata.name === name);
  const [only, ...others] = found;
  if (only === undefined) {
    throw new FatalError(`there is no GitOpsCluster ${name ? `${namespace}/${name}` : `in namespace ${namespace}`}`);
  }
  if (others.length > 0) {
    throw new UsageError(`--name must say which: ${found.map(({ metadata }) => metadata.name).join(', ')}`);
  }
  return only;
}

function valuesOf({ server, addOn }: FleetSpec) {
  if (server.problem !== undefined) {
    throw new FatalError(server.problem);
  }
  if (addOn.problem !== undefined) {
    throw new FatalError(addOn.problem);
  }
  return { server: server.value, addOn: addOn.value };
}

function authoritiesOf(caches: Caches, namespace: string): string {
  const bundle = caches.bundles.get({ namespace, name: hubNames.authorityBundle });
  return bundle?.data?.['ca-bundle.crt'] ?? '(the CA)';
}

/** The values that an enrolled cluster gets, or that a cluster would get at its enrolment. */
function deliveredTo(caches: Caches, namespace: string, addOn: AddOnSettings, cluster: string): DeliveredSecrets {
  const secret = caches.ownSecrets.get({ namespace, name: deliveredSecretName(cluster) });
  const { isDelivered } = planClientCertificate(caches, { cluster, foundation: { addOn }, now: new Date() }, secret);
  const data = secret?.data;
  const text = (key: string, otherwise: string) => secretText(data, key) ?? otherwise;
  const { clientCertificate, redisPassword, serverSecretKey } = placeholder;
  return {
    ...placeholder,
    clientCertificate: isDelivered
      ? {
          certificate: text('tls.crt', clientCertificate?.certificate ?? ''),
          key: text('tls.key', clientCertificate?.key ?? ''),
        }
      : undefined,
    redisPassword: text('redis-password', redisPassword),
    serverSecretKey: text('server.secretkey', serverSecretKey),
  };
}

function workOf(flags: Flags): (work: RenderedWork) => KubeObject {
  return ({ part, index, spec }) => {
    const object = {
      apiVersion: 'work.open-cluster-management.io/v1',
      kind: 'ManifestWork',
      metadata: { namespace: flags.cluster, name: partWorkName(part, index) },
      spec,
    };
    return object;
  };
}

/** A placeholder that is valid in a Secret's `data`. */
const hidden = Buffer.from('(hidden)').toString('base64');

function withoutSecrets(work: RenderedWork): RenderedWork {
  const mask = (values: object | undefined, text: string) =>
    values && Object.fromEntries(Object.keys(values).map((key) => [key, text]));
  const manifests = work.spec.workload.manifests.map((object) => {
    if (object.kind !== 'Secret') {
      return object;
    }
    const { data, stringData } = object as KubeObject & { data?: object; stringData?: object };
    return {
      ...object,
      ...(data ? { data: mask(data, hidden) } : {}),
      ...(stringData ? { stringData: mask(stringData, '(hidden)') } : {}),
    };
  });
  return { ...work, spec: { ...work.spec, workload: { manifests } } };
}
