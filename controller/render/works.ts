import { wellKnown } from '../../lib/base/index.ts';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import { kindsOf, type ManifestConfig } from '../hub/index.ts';
import type { AddOnConfig } from './addon-config.ts';
import { type AgentInput, agentContextOf } from './agent-context.ts';
import { decorate } from './decorate.ts';
import { deploymentFeedback, keepNamespace, keepOthersKeys, orphan, statefulSetFeedback } from './manifest-configs.ts';
import { type OperatorInput, renderOperator } from './operator.ts';
import { type RenderedWork, withLabel, worksOf } from './pack.ts';
import type { Templates } from './templates.ts';

/** The complete input for the works of a managed cluster. */
export interface RenderInput extends AgentInput {
  /** The Argo CD to deliver. Undefined when the cluster has its own, or an operator deploys it. */
  readonly argoCD: ArgoCdInput | undefined;
  /** If set, argocd-operator deploys Argo CD and the agent from an ArgoCD resource. */
  readonly operator?: OperatorInput | undefined;
  readonly config: AddOnConfig;
}

/** The Argo CD that the works deliver. */
export interface ArgoCdInput {
  readonly image: string;
  readonly redisImage: string;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
  /** Stripped for delivery. */
  readonly crds: readonly CustomResourceDefinition[];
}

/**
 * Renders all works of one managed cluster. The same input yields the same works.
 * @throws OversizedManifestError when one manifest is larger than a work may be
 */
export function renderWorks(templates: Templates, input: RenderInput): RenderedWork[] {
  const { argoCD, namespace, config, operator } = input;
  const context = agentContextOf(input);
  if (operator) {
    return renderOperator(templates, { ...input, operator }, context);
  }
  const works: RenderedWork[] = [];
  if (argoCD) {
    // Deleting a CRD deletes all its objects, also those of users. So the CRDs stay.
    works.push(...worksOf('crds', argoCD.crds.map(withLabel), [], { propagationPolicy: 'Orphan' }));
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
      ...worksOf('argocd', decorate(objects, config).map(withLabel), argoCdConfigs(namespace), orphan(namespace)),
    );
  }
  const agent = [...templates.render('agent', context), ...templates.render('work-agent', {})];
  const needed = argoCD ? [] : kindsOf(input.mode);
  works.push(
    ...worksOf(
      'agent',
      [...needed.map(crdName), ...decorate(agent, config).map(withLabel)],
      [...agentConfigs(namespace), ...needed.map(readOnly)],
      orphan(namespace, needed),
    ),
  );
  return works;
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

function argoCdConfigs(namespace: string): ManifestConfig[] {
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
    statefulSetFeedback(namespace, 'argocd-application-controller'),
  ];
}

function agentConfigs(namespace: string): ManifestConfig[] {
  return [
    keepNamespace(namespace),
    keepOthersKeys(namespace, 'configmaps', 'argocd-agent-params'),
    deploymentFeedback(namespace, 'argocd-agent-agent'),
  ];
}

/** All manifests of some works. */
export function allManifests(works: readonly RenderedWork[]): KubeObject[] {
  return works.flatMap(({ spec }) => spec.workload.manifests);
}
