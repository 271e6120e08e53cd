import { type KubeClient, type KubeObject, keyOf, resourceType } from '../../lib/kube/index.ts';

/** What the control plane or kubelets make, each for a short time or for something else. */
const passing = new Set([
  'APIService',
  'ComponentStatus',
  'ControllerRevision',
  'Endpoints',
  'EndpointSlice',
  'Event',
  'Lease',
]);
/** What every namespace has, and goes with it. */
const ofNamespaces = ['ConfigMap/kube-root-ca.crt', 'ServiceAccount/default'];

interface Discovered {
  items: {
    metadata: { name?: string };
    versions: {
      version: string;
      resources?: { resource: string; scope: string; verbs: string[]; responseKind?: { kind: string } }[];
    }[];
  }[];
}

/** An object's kind, namespace and name: `ConfigMap argocd/argocd-cm`. */
export const nameOf = (object: KubeObject): string => `${object.kind} ${keyOf(object)}`;

/** All objects of a cluster by {@link nameOf}, without those that come and go by themselves. */
export async function everything(client: KubeClient): Promise<ReadonlyMap<string, KubeObject>> {
  const lists = (await kindsOf(client)).map((type) => client.list(type));
  const all = (await Promise.all(lists)).flat();
  const isLasting = ({ kind, metadata: { name } }: KubeObject) => !ofNamespaces.includes(`${kind}/${name}`);
  return new Map(all.filter(isLasting).map((object) => [nameOf(object), object]));
}

async function kindsOf(client: KubeClient) {
  const headers = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' };
  const found = await Promise.all(
    ['/api', '/apis'].map(async (path) => {
      const { body } = await client.request(path, { headers });
      return (JSON.parse(await body.text()) as Discovered).items;
    }),
  );
  return found.flat().flatMap(({ metadata: { name: group = '' }, versions }) => {
    const [{ version, resources = [] } = { version: '' }] = versions;
    return resources.flatMap(({ resource: plural, scope, verbs, responseKind }) => {
      const kind = responseKind?.kind ?? '';
      const isKept = verbs.includes('list') && verbs.includes('delete') && !passing.has(kind);
      return isKept ? [resourceType({ group, version, kind, plural, namespaced: scope === 'Namespaced' })] : [];
    });
  });
}

/**
 * What tells whether somebody has written an object since: its content without its status, and its resourceVersion if it has no
 * status, which others keep.
 */
export function fingerprint(object: KubeObject): string {
  const { status, metadata, ...rest } = object as KubeObject & { status?: unknown };
  const { managedFields: _, resourceVersion, ...kept } = metadata;
  return JSON.stringify({ ...rest, metadata: kept, ...(status === undefined && { resourceVersion }) });
}

/** One entry of an object's `managedFields`. */
interface FieldOwner {
  manager?: string;
  fieldsV1?: object;
}

/** The fields of an object that have more than one owner, in words: `ConfigMap argocd/a data.b: helm, kubectl`. */
export function fieldsOfTwo(object: KubeObject): string[] {
  const owners = new Map<string, Set<string>>();
  for (const { manager = '', fieldsV1 = {} } of (object.metadata.managedFields ?? []) as FieldOwner[]) {
    for (const field of fieldsIn(fieldsV1)) {
      owners.set(field, (owners.get(field) ?? new Set()).add(manager));
    }
  }
  return [...owners]
    .filter(([, managers]) => managers.size > 1)
    .map(([field, managers]) => `${nameOf(object)} ${field}: ${[...managers].sort().join(', ')}`);
}

/** The paths of the fields without fields of their own. That a map is there (`.`) belongs to all who have a key in it. */
function fieldsIn(fields: object, path = ''): string[] {
  return Object.entries(fields)
    .filter(([key]) => key !== '.')
    .flatMap(([key, inner]) => {
      const here = `${path}${path && key.startsWith('f:') ? '.' : ''}${key.replace(/^f:/, '').replace(/^[kv]:(.*)/, '[$1]')}`;
      const below = fieldsIn(inner as object, here);
      return below.length > 0 || '.' in (inner as object) ? below : [here];
    });
}
