import type { ManifestWork } from '../hub/index.ts';
import type { AddOnConfig } from './addon-config.ts';
import { decorate } from './decorate.ts';
import type { Templates } from './templates.ts';

/** What the clean-up of a managed cluster is made from. */
export interface CleanUpInput {
  /** Namespace of Argo CD and the agent on the managed cluster. */
  readonly namespace: string;
  /** Other namespaces that the add-on has used. */
  readonly otherNamespaces?: readonly string[];
  /** Given when only these namespaces are left, not the cluster: the namespace of the principal on the hub. */
  readonly principalNamespace?: string;
  /** Our image: the Job is a mode of this program. */
  readonly image: string;
  readonly pullPolicy: string;
  readonly config: AddOnConfig;
}

/** How the Job that a work brings fares, as the cluster reports it. */
export type CleanUpState = 'running' | 'complete' | 'failed';

/**
 * Renders the work that cleans a managed cluster up once agent and Argo CD are gone (OCM's pre-delete hook), or the
 * namespaces that they have moved away from. The two have nothing in common on the cluster, so either may come while the
 * other is there.
 */
export function renderCleanUp(templates: Templates, input: CleanUpInput): ManifestWork['spec'] {
  const { namespace, otherNamespaces = [], principalNamespace, image, pullPolicy, config } = input;
  const others = otherNamespaces.filter((one) => one !== namespace);
  const name = principalNamespace === undefined ? 'argocd-agent-addon-cleanup' : 'argocd-agent-addon-former';
  const context = {
    name,
    namespace,
    others,
    othersText: others.join(','),
    principalNamespace: principalNamespace ?? false,
    agentImage: image,
    pullPolicy,
  };
  const manifests = decorate(templates.render('cleanup', context), config);
  return {
    workload: { manifests },
    manifestConfigs: [
      {
        resourceIdentifier: { group: 'batch', resource: 'jobs', namespace: name, name },
        // The server completes a Job's specification, and then takes no other.
        updateStrategy: { type: 'CreateOnly' },
        feedbackScrapeType: 'Watch',
        feedbackRules: [
          { type: 'WellKnownStatus' },
          {
            type: 'JSONPaths',
            jsonPaths: [{ name: 'JobFailed', path: '.status.conditions[?(@.type=="Failed")].status' }],
          },
        ],
      },
    ],
  };
}

/** Reads the Job's state from its work. */
export function cleanUpState(work: ManifestWork): CleanUpState {
  const manifests = work.status?.resourceStatus?.manifests ?? [];
  const values = manifests.find(({ resourceMeta }) => resourceMeta.kind === 'Job')?.statusFeedback?.values ?? [];
  const isTrue = (name: string) => values.some((value) => value.name === name && value.fieldValue.string === 'True');
  if (isTrue('JobComplete')) {
    return 'complete';
  }
  return isTrue('JobFailed') ? 'failed' : 'running';
}
