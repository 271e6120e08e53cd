import { wellKnown } from '../../lib/base/index.ts';
import { configMaps, type KubeObject, type ResourceType, roleBindings, roles, secrets } from '../../lib/kube/index.ts';
import { addOnName, clusterManagementAddOns, gitOpsClusters, placements } from '../hub/index.ts';
import { clusterSetBindings } from './kinds.ts';
import type { HelmRelease, Steps, TakeoverScope } from './steps.ts';

const releaseName = 'meta.helm.sh/release-name';
const releaseNamespace = 'meta.helm.sh/release-namespace';

/** The Helm release that an object belongs to. */
export function releaseOfObject(object: KubeObject | undefined): HelmRelease | undefined {
  const { [releaseName]: name, [releaseNamespace]: namespace } = object?.metadata.annotations ?? {};
  return name && namespace ? { name, namespace } : undefined;
}

/** Whether an object belongs to a Helm release. */
export function isOfRelease(object: KubeObject, release: HelmRelease | undefined): boolean {
  const own = releaseOfObject(object);
  return release !== undefined && own?.name === release.name && own.namespace === release.namespace;
}

/** The objects of a Helm release that both charts have. */
async function sharedObjects(
  { client, namespace, signal }: TakeoverScope,
  release: HelmRelease,
): Promise<{ type: ResourceType; object: KubeObject }[]> {
  const found: { type: ResourceType; object: KubeObject }[] = [];
  const add = (type: ResourceType, objects: readonly (KubeObject | undefined)[]) =>
    found.push(...objects.flatMap((object) => (object && isOfRelease(object, release) ? [{ type, object }] : [])));
  for (const type of [gitOpsClusters, placements, clusterSetBindings] as ResourceType[]) {
    add(type, await client.list(type, { signal }));
  }
  add(clusterManagementAddOns, [await client.get(clusterManagementAddOns, { name: addOnName }, signal)]);
  add(configMaps, [await client.get(configMaps, { namespace, name: 'ocm-placement-generator' }, signal)]);
  for (const type of [roles, roleBindings] as ResourceType[]) {
    add(type, [await client.get(type, { namespace, name: 'argocd-applicationset-placement' }, signal)]);
  }
  return found;
}

/**
 * Hands the objects that both charts have over to another Helm release, and makes Helm forget the former one. The rest of
 * the former release stays as it is. `helm uninstall` would delete it: it follows the stored manifest, and looks at no
 * annotation of the live objects.
 */
export async function changeRelease(scope: TakeoverScope, steps: Steps, former: HelmRelease): Promise<void> {
  const { client, release, signal } = scope;
  const metadata = {
    labels: { [wellKnown.managedByLabel]: 'Helm' },
    annotations: { [releaseName]: release.name, [releaseNamespace]: release.namespace },
  };
  const isSame = former.name === release.name && former.namespace === release.namespace;
  for (const { type, object } of isSame ? [] : await sharedObjects(scope, former)) {
    await steps.patch(type, object, `goes to Helm release ${release.namespace}/${release.name}`, { metadata });
  }
  const labelSelector = `owner=helm,name=${former.name}`;
  for (const record of await client.list(secrets, { namespace: former.namespace, labelSelector, signal })) {
    await steps.delete(secrets, record, 'deleted, so that Helm forgets the release and deletes nothing of it');
  }
}
