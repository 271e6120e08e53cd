import type { ArchivedFile } from '../../lib/base/index.ts';
import { argoAppProjects } from '../../lib/bridge/index.ts';
import {
  configMaps,
  deployments,
  endpointSlices,
  events,
  type KubeObject,
  leases,
  pods,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
  services,
  statefulSets,
} from '../../lib/kube/index.ts';
import { describeError } from '../../lib/ops/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import type { Side } from '../ctl-command.ts';
import { addOnKind, argoCdInstances, fleetKind, redisPolicies } from '../kinds.ts';
import { redacted, redactText } from './redact.ts';

/** Kinds that are read in the side's namespace. */
const local: readonly ResourceType[] = [
  secrets,
  configMaps,
  services,
  endpointSlices,
  deployments,
  statefulSets,
  pods,
  leases,
  events,
  roles,
  roleBindings,
  redisPolicies,
  argoAppProjects,
  argoCdInstances,
];
/** Kinds that are read in all namespaces. */
const everywhere: readonly ResourceType[] = [shownApplications, fleetKind, addOnKind];

/** Last lines of each container, and most bytes of them. */
const logLines = 2_000;
const logBytes = 1024 * 1024;
/** Most objects of one kind: an archive is to be sent. */
const mostObjects = 5_000;

/** What a supporter needs of a side, without what is secret. What cannot be read is named with the reason. */
export async function collect(side: Side, folder: string, signal: AbortSignal): Promise<ArchivedFile[]> {
  const list = async (type: ResourceType, namespace?: string): Promise<ArchivedFile> => {
    const path = `${folder}/${type.plural}${type.group === '' ? '' : `.${type.group}`}.json`;
    try {
      const page = await side.client.listPage(type, {
        ...(namespace === undefined ? {} : { namespace }),
        limit: mostObjects,
        signal,
      });
      const note = page.continue === undefined ? {} : { truncated: `the first ${mostObjects} only` };
      return { path, content: JSON.stringify({ ...note, items: page.items.map(redacted) }, undefined, 2) };
    } catch (error) {
      signal.throwIfAborted();
      return { path, content: JSON.stringify({ error: describeError(error) }) };
    }
  };
  return Promise.all([
    ...local.map((type) => list(type, side.namespace)),
    ...everywhere.map((type) => list(type)),
  ]).then(async (files) => [...files, ...(await logs(side, folder, signal))]);
}

/** The logs of the programs of argocd-agent, and of the run before when they crashed. */
async function logs({ client, namespace }: Side, folder: string, signal: AbortSignal): Promise<ArchivedFile[]> {
  const found = await client.list(pods, { namespace, signal }).catch(() => []);
  const own = found.filter(({ metadata }: KubeObject) =>
    /argocd-agent|gitops-controller|-principal/.test(metadata.name),
  );
  const files: ArchivedFile[] = [];
  for (const pod of own.slice(0, 20)) {
    for (const { name, restartCount = 0 } of pod.status?.containerStatuses ?? []) {
      for (const previous of restartCount > 0 ? [false, true] : [false]) {
        const query = `container=${name}&tailLines=${logLines}&limitBytes=${logBytes}${previous ? '&previous=true' : ''}`;
        const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}/log?${query}`;
        const content = await client
          .request(path, { signal })
          .then(({ body }) => body.text())
          .catch((error: unknown) => describeError(error));
        const file = `${pod.metadata.name}-${name}${previous ? '-previous' : ''}`.slice(0, 80);
        files.push({ path: `${folder}/${file}.log`, content: redactText(content) });
      }
    }
  }
  return files;
}
