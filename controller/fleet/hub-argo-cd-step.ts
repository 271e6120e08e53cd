import { wellKnown } from '../../lib/base/index.ts';
import type { Deployment, StatefulSet } from '../../lib/kube/index.ts';
import { type StepReport, type StepResult, succeeded } from '../hub/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';

/**
 * Reports whether the application controller of the hub's own Argo CD leaves the fleet's Applications to the clusters.
 * Argo CD honours `argocd.argoproj.io/skip-reconcile` on cluster Secrets from 3.4 on. An older application controller
 * reconciles the Applications through the resource proxy, beside the cluster's own.
 */
export function checkHubArgoCd(
  { caches }: Pick<FleetDeps, 'caches'>,
  { namespace }: Pick<Fleet, 'namespace'>,
): StepReport {
  const running = caches.applicationControllers(namespace).filter(({ spec }) => (spec?.replicas ?? 1) > 0);
  const results = running.map(resultFor);
  const worst = results.find((one) => one?.status === 'False') ?? results.find((one) => one?.status === 'Unknown');
  return { result: worst ?? results[0] ?? succeeded('The hub runs no application controller of its own') };
}

function resultFor({ metadata: { namespace, name }, spec }: StatefulSet | Deployment): StepResult {
  const image = spec?.template?.spec?.containers[0]?.image ?? '';
  const version = versionOf(image);
  const subject = `the hub's application controller ${namespace}/${name}`;
  const advice = `scale it to 0 replicas if the hub deploys nothing itself, or update the hub's Argo CD to 3.4 or later; until then Applications with the annotation ${wellKnown.skipReconcileAnnotation}=true are left to the clusters`;
  if (version === undefined) {
    const message = `${subject} runs image ${JSON.stringify(image)}, whose version is not known; before 3.4 it reconciles the fleet's Applications as well: ${advice}`;
    return { status: 'Unknown', reason: 'VersionUnknown', message };
  }
  const [major, minor] = version;
  if (major > 3 || (major === 3 && minor >= 4)) {
    return succeeded(`${subject} is of version ${major}.${minor} and skips the clusters of the fleet`);
  }
  const message = `${subject} is of version ${major}.${minor} and reconciles the fleet's Applications beside the clusters: ${advice}`;
  return { status: 'False', reason: 'HubReconcilesApplications', message };
}

/** Major and minor version from the tag of an image, for example `quay.io/argoproj/argocd:v3.2.6`. */
function versionOf(image: string): [major: number, minor: number] | undefined {
  const [, major, minor] = /:v?(\d{1,4})\.(\d{1,4})(?:[.@+-][^/:]*(?::[0-9a-f]+)?)?$/.exec(image) ?? [];
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)];
}
