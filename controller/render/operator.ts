import { createHash } from 'node:crypto';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import { type AgentContext, isOriginalImage, type Templates } from '../../lib/manifests/index.ts';
import { isArgoCd, type ManifestConfig } from '../hub/index.ts';
import type { AddOnConfig } from './addon-config.ts';
import { decorate } from './decorate.ts';
import {
  argoCdFeedback,
  defaultProjectRule,
  deploymentFeedback,
  keepDefaultProject,
  keepNamespace,
  orphan,
} from './manifest-configs.ts';
import { type RenderedWork, withLabel, worksOf } from './pack.ts';

/** An Argo CD that argocd-operator deploys from an ArgoCD resource. */
export interface OperatorInput {
  readonly namespace: string;
  /** Image of the operator; undefined when the cluster has argocd-operator already. */
  readonly image: string | undefined;
  /** The operator's CRDs, stripped for delivery; empty when the cluster has them. */
  readonly crds: readonly CustomResourceDefinition[];
  /** The agent's image in the generated ArgoCD. Undefined: the operator chooses it. */
  readonly agentImage: string | undefined;
  /** The user's objects that replace the generated ArgoCD. */
  readonly payload: readonly KubeObject[] | undefined;
}

/**
 * Renders the works of a cluster whose Argo CD argocd-operator deploys. The ArgoCD resource is part of the agent's work,
 * which is removed first: the operator must still run to remove its Argo CD, and the work agent must still have the right
 * to observe the removal.
 */
export function renderOperator(
  templates: Templates,
  input: { readonly namespace: string; readonly config: AddOnConfig; readonly operator: OperatorInput },
  context: AgentContext,
): RenderedWork[] {
  const { namespace, config, operator } = input;
  const { crds, image, payload } = operator;
  const objects =
    image === undefined
      ? []
      : templates.render('operator', {
          operatorNamespace: operator.namespace,
          operatorImage: image,
          pullPolicy: context.pullPolicy,
        });
  const runtime = decorate([...objects, ...templates.render('work-agent', {})], config);
  const argoCds = payload?.map((object) => withEndpoint(object, context)) ?? [
    withLabel(generatedArgoCd(operator, context)),
  ];
  const agents = argoCds.filter((object) => isArgoCd(object) && agentOf(object)).map(accountOfAgent);
  const files = agents.length === 0 ? commonFiles : [...commonFiles, 'agent/35-live-access.yaml.hbs'];
  const own = templates.render('agent', { ...context, agents }, files).map(withLabel);
  const feedback = argoCds
    .filter(isArgoCd)
    .map(({ metadata }) => argoCdFeedback(metadata.namespace ?? '', metadata.name));
  return [
    ...worksOf('crds', crds.map(withLabel), [], { propagationPolicy: 'Orphan' }),
    ...worksOf('argocd', runtime.map(withLabel), operatorConfigs(operator.namespace), orphan(operator.namespace)),
    ...worksOf(
      'agent',
      [...own, ...argoCds],
      [keepNamespace(namespace), keepDefaultProject(namespace), ...feedback],
      orphan(namespace, [defaultProjectRule(namespace)]),
    ),
  ];
}

const commonFiles = [
  'agent/10-namespace.yaml.hbs',
  'agent/20-credentials.yaml.hbs',
  'agent/25-default-project.yaml.hbs',
];

function operatorConfigs(namespace: string): ManifestConfig[] {
  return [keepNamespace(namespace), deploymentFeedback(namespace, 'argocd-operator-controller-manager')];
}

/**
 * A variable that nobody reads: argocd-operator replaces the agent's pod when it changes. argocd-agent's own image reads its
 * certificate only when it starts. Without an image, the operator takes that one.
 */
function restartOnRenewal(agentImage: string | undefined, { clientCertificate }: AgentContext): object {
  if (typeof clientCertificate !== 'object' || (agentImage !== undefined && !isOriginalImage(agentImage))) {
    return {};
  }
  const value = createHash('sha256').update(clientCertificate.certificate).digest('hex');
  return { env: [{ name: 'CLIENT_CERTIFICATE_CHECKSUM', value }] };
}

/** The ArgoCD resource that argocd-pull-integration generates, field by field. */
function generatedArgoCd({ agentImage }: OperatorInput, context: AgentContext): KubeObject {
  const object = {
    apiVersion: 'argoproj.io/v1beta1',
    kind: 'ArgoCD',
    metadata: { name: 'argocd', namespace: context.namespace },
    spec: {
      server: { enabled: false },
      sourceNamespaces: ['*'],
      argoCDAgent: {
        agent: {
          enabled: true,
          allowedNamespaces: ['*'],
          creds: 'mtls:open-cluster-management:cluster:([^:]+):addon:argocd-agent',
          logLevel: 'info',
          logFormat: 'text',
          client: {
            principalServerAddress: context.serverAddress,
            principalServerPort: context.serverPort,
            mode: context.mode,
            enableWebSocket: false,
            enableCompression: false,
            keepAliveInterval: '50s',
          },
          tls: { secretName: context.clientSecretName, rootCASecretName: 'argocd-agent-ca', insecure: false },
          redis: { serverAddress: 'argocd-redis:6379' },
          ...(agentImage === undefined ? {} : { image: agentImage }),
          ...restartOnRenewal(agentImage, context),
          ...(context.destinationBasedMapping
            ? { destinationBasedMapping: { enabled: true, createNamespace: true } }
            : {}),
        },
      },
    },
  };
  return object;
}

type Fields = Record<string, unknown>;
const fields = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;

/** The agent's settings in an ArgoCD. */
const agentOf = (argoCd: KubeObject): Fields | undefined =>
  fields(fields(fields((argoCd as { spec?: unknown }).spec)?.argoCDAgent)?.agent);

/** The service account that argocd-operator makes for the agent of an ArgoCD. */
const accountOfAgent = ({ metadata: { name, namespace } }: KubeObject) => ({ name: `${name}-agent-agent`, namespace });

/**
 * Completes an ArgoCD of the user with the principal's address and port: in `spec.argoCDAgent.agent.client`, or, without
 * an agent there, as parameters in `spec.extraConfig`. Values that are set stay, as in argocd-pull-integration.
 */
function withEndpoint(object: KubeObject, { serverAddress, serverPort }: AgentContext): KubeObject {
  if (!isArgoCd(object)) {
    return object;
  }
  const spec = fields((object as { spec?: unknown }).spec) ?? {};
  const agent = agentOf(object);
  const fill = (target: Fields, values: Record<string, string>): Fields => {
    const missing = Object.entries(values).filter(([key]) => target[key] === undefined || target[key] === '');
    return { ...target, ...Object.fromEntries(missing) };
  };
  if (agent) {
    const client = fill(fields(agent.client) ?? {}, {
      principalServerAddress: serverAddress,
      principalServerPort: serverPort,
    });
    const argoCDAgent = { ...fields(spec.argoCDAgent), agent: { ...agent, client } };
    return { ...object, spec: { ...spec, argoCDAgent } } as KubeObject;
  }
  const extraConfig = fill(fields(spec.extraConfig) ?? {}, {
    'agent.principal.server.address': serverAddress,
    'agent.principal.server.port': serverPort,
  });
  return { ...object, spec: { ...spec, extraConfig } } as KubeObject;
}
