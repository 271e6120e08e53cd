import type { PodSpec } from '../../lib/kube/index.ts';
import type { Templates } from '../../lib/manifests/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import type { AddOnConfig } from './addon-config.ts';
import { decorate } from './decorate.ts';

/** The input of the clean-up Job of a managed cluster. */
export interface CleanUpInput {
  /** Namespace of Argo CD and the agent on the managed cluster. */
  readonly namespace: string;
  /** Other namespaces that the add-on has used. */
  readonly otherNamespaces?: readonly string[];
  /** The principal's namespace on the hub. Set only when the cluster stays enrolled and these namespaces are cleaned up. */
  readonly principalNamespace?: string;
  /** An image of this project: the Job runs `gitops-controller`. */
  readonly image: string;
  readonly pullPolicy: string;
  readonly config: AddOnConfig;
}

/** State of the clean-up Job, as the cluster reports it. */
export type CleanUpState = 'running' | 'complete' | 'failed';

/**
 * Renders the work with the clean-up Job: for a detached cluster once agent and Argo CD are removed (OCM's pre-delete hook),
 * or for namespaces that they no longer use. The two Jobs share no objects on the cluster, so both may exist at the same
 * time.
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
    image,
    pullPolicy,
  };
  const manifests = decorate(templates.render('cleanup', context), config);
  return {
    workload: { manifests },
    manifestConfigs: [
      {
        resourceIdentifier: { group: 'batch', resource: 'jobs', namespace: name, name },
        // A Job's specification is immutable, and the server completes it: an update would be refused.
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

/** The namespaces that the Job of a work cleans up. */
export function cleanedNamespaces({ spec }: Pick<ManifestWork, 'spec'>): string[] {
  const jobs = spec.workload.manifests.filter(({ kind }) => kind === 'Job') as JobManifest[];
  const variables = jobs.flatMap((job) => job.spec?.template?.spec?.containers?.[0]?.env ?? []);
  return variables.flatMap(({ name, value = '' }) =>
    namespaceVariables.has(name) ? value.split(',').filter(Boolean) : [],
  );
}

interface JobManifest {
  readonly spec?: { readonly template?: { readonly spec?: PodSpec } };
}

/** The environment of the Job that names them (`templates/cleanup`). */
const namespaceVariables: ReadonlySet<string> = new Set(['ARGOCD_NAMESPACE', 'CLEANUP_NAMESPACES']);

/** Reads the Job's state from the status feedback of its work. */
export function cleanUpState(work: ManifestWork): CleanUpState {
  const manifests = work.status?.resourceStatus?.manifests ?? [];
  const values = manifests.find(({ resourceMeta }) => resourceMeta.kind === 'Job')?.statusFeedback?.values ?? [];
  const isTrue = (name: string) => values.some((value) => value.name === name && value.fieldValue.string === 'True');
  if (isTrue('JobComplete')) {
    return 'complete';
  }
  return isTrue('JobFailed') ? 'failed' : 'running';
}
