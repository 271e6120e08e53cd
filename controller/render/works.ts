import { wellKnown } from '../../lib/base/index.ts';
import type { CustomResourceDefinition, KubeObject, Secret } from '../../lib/kube/index.ts';
import { type AgentContext, type AgentInput, agentContextOf, type Templates } from '../../lib/manifests/index.ts';
import { clientSecretName, kindsOf, type ManifestConfig, requestedSecretName } from '../hub/index.ts';
import type { ClusterSettings } from '../spec/index.ts';
import type { AddOnConfig } from './addon-config.ts';
import { withSettings } from './cluster-settings.ts';
import { decorate } from './decorate.ts';
import {
  crdRule,
  defaultProjectRule,
  deploymentFeedback,
  keepDefaultProject,
  keepNamespace,
  keepOthersKeys,
  orphan,
  statefulSetFeedback,
} from './manifest-configs.ts';
import { type OperatorInput, renderOperator } from './operator.ts';
import { type RenderedWork, withLabel, worksOf } from './pack.ts';
import { withSecretChecksums } from './secret-checksums.ts';

/** The complete input for the works of a managed cluster. */
export interface RenderInput extends Omit<AgentInput, 'clientSecretName' | 'enrolmentToken' | 'isAddOn'> {
  /** The Argo CD to deliver. Undefined when the cluster has its own, or an operator deploys it. */
  readonly argoCD: ArgoCdInput | undefined;
  /** If set, argocd-operator deploys Argo CD and the agent from an ArgoCD resource. */
  readonly operator?: OperatorInput | undefined;
  readonly config: AddOnConfig;
  /** Settings of Argo CD and the agent. An operator takes none. */
  readonly settings?: ClusterSettings | undefined;
}

/** The Argo CD that the works deliver. */
export interface ArgoCdInput {
  readonly image: string;
  readonly redisImage: string;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
  /** Whether the cluster has the StatefulSet of an earlier version, whose podManagementPolicy cannot be changed. */
  readonly orderedPods?: boolean | undefined;
  /** Stripped for delivery. */
  readonly crds: readonly CustomResourceDefinition[];
}

/**
 * Renders all works of one managed cluster. The same input yields the same works.
 * @throws OversizedManifestError when one manifest is larger than a work may be
 */
export function renderWorks(templates: Templates, input: RenderInput): RenderedWork[] {
  const { argoCD, namespace, config, operator, settings } = input;
  const context = agentContextOf({
    ...input,
    clientSecretName: input.clientCertificate ? clientSecretName : requestedSecretName,
    enrolmentToken: undefined,
    isAddOn: true,
    metricsNamespaces: config.metricsNamespaces,
  });
  if (operator) {
    return renderOperator(templates, { ...input, operator }, context);
  }
  const works: RenderedWork[] = [];
  const objects = argoCD ? renderArgoCd(templates, context, argoCD, settings) : [];
  const secrets = objects.filter(({ kind }) => kind === 'Secret') as Secret[];
  const complete = (some: readonly KubeObject[]) =>
    withSecretChecksums(
      decorate(withSettings(some, settings, argoCD?.image), config),
      secrets,
      argoCD?.serverSecretKey ?? '',
    ).map(withLabel);
  if (argoCD) {
    // Deleting a CRD deletes all its objects, also those of users. So the CRDs stay.
    works.push(...worksOf('crds', argoCD.crds.map(withLabel), [], { propagationPolicy: 'Orphan' }));
    works.push(...worksOf('argocd', complete(objects), argoCdConfigs(namespace, context), orphan(namespace)));
  }
  const agent = [...templates.render('agent', context), ...templates.render('work-agent', {})];
  const needed = argoCD ? [] : kindsOf(input.mode);
  works.push(
    ...worksOf(
      'agent',
      [...needed.map(crdName), ...complete(agent)],
      [...agentConfigs(namespace), ...needed.map(readOnly)],
      orphan(namespace, [...needed.map(crdRule), defaultProjectRule(namespace)]),
    ),
  );
  return works;
}

function renderArgoCd(
  templates: Templates,
  { namespace, pullPolicy, isAutonomous }: AgentContext,
  { image, redisImage, redisPassword, serverSecretKey, orderedPods = false }: ArgoCdInput,
  settings: ClusterSettings | undefined,
): KubeObject[] {
  const [repoServerHost, repoServerPort] = (settings?.params?.['repo.server'] ?? 'argocd-repo-server:8081').split(':');
  return templates.render('argocd', {
    namespace,
    argoCDImage: image,
    redisImage,
    redisPassword,
    serverSecretKey,
    orderedPods,
    pullPolicy,
    // Where the cluster owns the Applications, its users generate them there.
    isAutonomous,
    repoServerHost,
    repoServerPort,
    knownHosts: templates.text('argocd/ssh_known_hosts'),
  });
}

/** A CRD that the cluster's own Argo CD brought. The work agent only reports whether it exists. */
function crdName(name: string): KubeObject {
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name } };
}

function readOnly(name: string): ManifestConfig {
  const group = 'apiextensions.k8s.io';
  return {
    resourceIdentifier: { group, resource: 'customresourcedefinitions', name },
    updateStrategy: { type: 'ReadOnly' },
  };
}

function argoCdConfigs(namespace: string, { isAutonomous }: Pick<AgentContext, 'isAutonomous'>): ManifestConfig[] {
  const configMaps = ['cm', 'cmd-params-cm', 'rbac-cm', 'ssh-known-hosts-cm', 'tls-certs-cm'];
  return [
    keepNamespace(namespace),
    // The repo server needs the ConfigMap. The agent fills it from the hub.
    {
      resourceIdentifier: { group: '', resource: 'configmaps', namespace, name: wellKnown.gpgKeysConfigMap },
      updateStrategy: { type: 'CreateOnly' },
    },
    ...configMaps.map((name) => keepOthersKeys(namespace, 'configmaps', `argocd-${name}`)),
    keepOthersKeys(namespace, 'secrets', 'argocd-secret'),
    deploymentFeedback(namespace, 'argocd-repo-server'),
    deploymentFeedback(namespace, 'argocd-redis'),
    ...(isAutonomous ? [deploymentFeedback(namespace, 'argocd-applicationset-controller')] : []),
    statefulSetFeedback(namespace, 'argocd-application-controller'),
  ];
}

function agentConfigs(namespace: string): ManifestConfig[] {
  return [
    keepNamespace(namespace),
    keepDefaultProject(namespace),
    keepOthersKeys(namespace, 'configmaps', 'argocd-agent-params'),
    deploymentFeedback(namespace, 'argocd-agent-agent'),
  ];
}

/** All manifests of some works. */
export function allManifests(works: readonly RenderedWork[]): KubeObject[] {
  return works.flatMap(({ spec }) => spec.workload.manifests);
}
