import { createHash } from 'node:crypto';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { AddOnDeploymentConfig, ManifestConfig, ManifestWork, OrphaningRule } from '../resources.ts';
import { decorate } from './decorate.ts';
import type { Templates } from './templates.ts';

/** OCM's admission refuses a work whose manifests are longer than this together, in bytes of JSON. */
export const workLimit = 500 * 1024;

/** Which of the works: they are delivered in this order and removed in the reverse one. */
export const workParts = ['crds', 'argocd', 'agent'] as const;
export type WorkPart = (typeof workParts)[number];

/** Everything that decides what a managed cluster gets. */
export interface RenderInput {
  /** Namespace of Argo CD and the agent on the managed cluster. */
  readonly namespace: string;
  readonly mode: 'managed' | 'autonomous';
  readonly serverAddress: string;
  readonly serverPort: string;
  /** PEM certificates that the principal's certificate may come from. */
  readonly authorities: string;
  /** Undefined when the cluster gets its certificate by itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  readonly agentImage: string;
  readonly pullPolicy: string;
  /** Undefined when the cluster has an Argo CD of its own. */
  readonly argoCD:
    | {
        readonly image: string;
        readonly redisImage: string;
        readonly redisPassword: string;
        readonly serverSecretKey: string;
        /** In their deliverable form. */
        readonly crds: readonly CustomResourceDefinition[];
      }
    | undefined;
  readonly config: AddOnDeploymentConfig['spec'] | undefined;
}

/** One ManifestWork's content. */
export interface RenderedWork {
  readonly part: WorkPart;
  /** Position among the works of its part. */
  readonly index: number;
  readonly spec: ManifestWork['spec'];
}

/** A manifest that no work can carry. */
export class OversizedManifestError extends Error {
  override readonly name = 'OversizedManifestError';
  readonly code = 'OVERSIZED_MANIFEST';

  constructor(manifest: KubeObject, bytes: number) {
    super(
      `${describe(manifest)} has ${bytes} bytes; a ManifestWork takes at most ${workLimit} (500 KiB) and one object cannot be split`,
    );
  }
}

/** Secret with the agent's client certificate: the name that the original's operator gives it. */
export const clientSecretName = 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert';

/**
 * Renders all works of one managed cluster. The same input gives the same works.
 * @throws OversizedManifestError
 */
export function renderWorks(templates: Templates, input: RenderInput): RenderedWork[] {
  const { argoCD, namespace } = input;
  const label = (objects: readonly KubeObject[]) => objects.map((object) => withLabel(object));
  const works: RenderedWork[] = [];
  if (argoCD) {
    const crds = label(argoCD.crds);
    // What users declared with these kinds would go with them, so they stay behind.
    works.push(...worksOf('crds', crds, [], { propagationPolicy: 'Orphan' }));
    const objects = templates.render('argocd', {
      namespace,
      argoCDImage: argoCD.image,
      redisImage: argoCD.redisImage,
      redisPassword: argoCD.redisPassword,
      serverSecretKey: argoCD.serverSecretKey,
      pullPolicy: input.pullPolicy,
      knownHosts: templates.text('argocd/ssh_known_hosts'),
    });
    works.push(
      ...worksOf('argocd', label(decorate(objects, input.config)), argoCdConfigs(namespace), orphan(namespace)),
    );
  }
  const params = {
    namespace,
    serverAddress: input.serverAddress,
    serverPort: input.serverPort,
    mode: input.mode,
    clientSecretName,
    destinationBasedMapping: input.mode === 'managed',
  };
  const agent = templates.render('agent', {
    ...params,
    authorities: input.authorities,
    clientCertificate: input.clientCertificate ?? false,
    agentImage: input.agentImage,
    pullPolicy: input.pullPolicy,
    paramsDigest: createHash('sha256').update(JSON.stringify(params)).digest('hex').slice(0, 16),
  });
  works.push(...worksOf('agent', label(decorate(agent, input.config)), agentConfigs(namespace), orphan(namespace)));
  return works;
}

/** Describes a manifest for a message. */
export function describe(manifest: KubeObject): string {
  const { namespace, name } = manifest.metadata;
  return `${manifest.kind} ${namespace ? `${namespace}/` : ''}${name}`;
}

/**
 * Packs manifests into as few works as the limit allows, in their order.
 * @throws OversizedManifestError
 */
export function pack(manifests: readonly KubeObject[], limit = workLimit): KubeObject[][] {
  const packed: KubeObject[][] = [];
  let room = 0;
  for (const manifest of manifests) {
    const bytes = Buffer.byteLength(JSON.stringify(manifest));
    if (bytes > limit) throw new OversizedManifestError(manifest, bytes);
    const last = packed.at(-1);
    if (last === undefined || bytes > room) {
      packed.push([manifest]);
      room = limit - bytes;
    } else {
      last.push(manifest);
      room -= bytes;
    }
  }
  return packed;
}

function worksOf(
  part: WorkPart,
  manifests: readonly KubeObject[],
  configs: readonly ManifestConfig[],
  deleteOption: ManifestWork['spec']['deleteOption'],
): RenderedWork[] {
  return pack(manifests).map((share, index) => {
    const manifestConfigs = configs.filter(({ resourceIdentifier: { resource, name } }) =>
      share.some((object) => object.metadata.name === name && pluralOf(object.kind) === resource),
    );
    return {
      part,
      index,
      spec: {
        workload: { manifests: share },
        ...(manifestConfigs.length > 0 ? { manifestConfigs } : {}),
        ...(deleteOption ? { deleteOption } : {}),
      },
    };
  });
}

function withLabel(object: KubeObject): KubeObject {
  const labels = { ...object.metadata.labels, 'app.kubernetes.io/managed-by': 'argocd-agent-addon' };
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** The namespace is not the works' to delete: it may have been there before. The clean-up Job decides. */
function orphan(namespace: string): NonNullable<ManifestWork['spec']['deleteOption']> {
  const rule: OrphaningRule = { group: '', resource: 'namespaces', name: namespace };
  return { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules: [rule] } };
}

function pluralOf(kind: string | undefined): string {
  return `${kind?.toLowerCase()}s`;
}

function deploymentFeedback(namespace: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: 'apps', resource: 'deployments', namespace, name },
    feedbackScrapeType: 'Watch',
    feedbackRules: [{ type: 'WellKnownStatus' }],
  };
}

function keepOthersKeys(namespace: string, resource: string, name: string): ManifestConfig {
  return {
    resourceIdentifier: { group: '', resource, namespace, name },
    updateStrategy: { type: 'ServerSideApply', serverSideApply: { fieldManager: 'work-agent', force: true } },
  };
}

/** A namespace that exists is left as it is: above all it does not get the label by which it would be taken for ours. */
function keepNamespace(name: string): ManifestConfig {
  return { resourceIdentifier: { group: '', resource: 'namespaces', name }, updateStrategy: { type: 'CreateOnly' } };
}

function argoCdConfigs(namespace: string): ManifestConfig[] {
  const configMaps = ['cm', 'cmd-params-cm', 'rbac-cm', 'ssh-known-hosts-cm', 'tls-certs-cm'];
  return [
    keepNamespace(namespace),
    // It has to be there for the repo server; what is in it comes from the hub by way of the agent.
    {
      resourceIdentifier: { group: '', resource: 'configmaps', namespace, name: 'argocd-gpg-keys-cm' },
      updateStrategy: { type: 'CreateOnly' },
    },
    ...configMaps.map((name) => keepOthersKeys(namespace, 'configmaps', `argocd-${name}`)),
    keepOthersKeys(namespace, 'secrets', 'argocd-secret'),
    deploymentFeedback(namespace, 'argocd-repo-server'),
    deploymentFeedback(namespace, 'argocd-redis'),
    {
      resourceIdentifier: { group: 'apps', resource: 'statefulsets', namespace, name: 'argocd-application-controller' },
      feedbackScrapeType: 'Watch',
      feedbackRules: [
        {
          type: 'JSONPaths',
          jsonPaths: [
            { name: 'ReadyReplicas', path: '.status.readyReplicas' },
            { name: 'Replicas', path: '.status.replicas' },
          ],
        },
      ],
    },
  ];
}

function agentConfigs(namespace: string): ManifestConfig[] {
  return [
    keepNamespace(namespace),
    keepOthersKeys(namespace, 'configmaps', 'argocd-agent-params'),
    deploymentFeedback(namespace, 'argocd-agent-agent'),
  ];
}
