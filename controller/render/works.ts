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

/** Everything that decides what a managed cluster gets. */
export interface RenderInput extends AgentInput {
  /** The Argo CD to deliver; undefined when the cluster has one of its own, or an operator that makes it. */
  readonly argoCD: ArgoCdInput | undefined;
  /** Given, argocd-operator makes Argo CD and the agent from an ArgoCD resource. */
  readonly operator?: OperatorInput | undefined;
  readonly config: AddOnConfig;
}

/** Argo CD as the works bring it. */
export interface ArgoCdInput {
  readonly image: string;
  readonly redisImage: string;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
  /** In their deliverable form. */
  readonly crds: readonly CustomResourceDefinition[];
}

/**
 * Renders all works of one managed cluster. The same input gives the same works.
 * @throws OversizedManifestError
 */
export function renderWorks(templates: Templates, input: RenderInput): RenderedWork[] {
  const { argoCD, namespace, config, operator } = input;
  const context = agentContextOf(input);
  if (operator) {
    return renderOperator(templates, { ...input, operator }, context);
  }
  const works: RenderedWork[] = [];
  if (argoCD) {
    // What users declared with these kinds would go with them, so they stay behind.
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
      [...needed.map(crdToLookAt), ...decorate(agent, config).map(withLabel)],
      [...agentConfigs(namespace), ...needed.map(onlyLook)],
      orphan(namespace, needed),
    ),
  );
  return works;
}

/** A CRD that the cluster's own Argo CD brought: the work agent reports whether it is there, and leaves it alone. */
function crdToLookAt(name: string): KubeObject {
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name } };
}

function onlyLook(name: string): ManifestConfig {
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
    // It has to be there for the repo server; what is in it comes from the hub by way of the agent.
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

/** All objects of some works. */
export function allManifests(works: readonly RenderedWork[]): KubeObject[] {
  return works.flatMap(({ spec }) => spec.workload.manifests);
}
