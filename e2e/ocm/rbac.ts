import type { KubeClient, KubeObject } from '../../lib/kube/index.ts';

const rbac = 'rbac.authorization.k8s.io/v1';
const fieldManager = 'ocm-stand-in';

/** The namespace and ServiceAccount of the work agent on a managed cluster. */
export const workAgentAccount = { namespace: 'open-cluster-management-agent', name: 'klusterlet-work-sa' };

/** Creates or updates objects of any kind by server-side apply. */
export async function applyObjects(client: KubeClient, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const type = await client.resolve(object.apiVersion ?? '', object.kind ?? '');
    if (!type) {
      throw new Error(`${client.server} does not serve ${object.apiVersion} ${object.kind}`);
    }
    await client.apply(type, object, { fieldManager, force: true });
  }
}

/** What accepting a cluster creates on the hub: its namespace, and the rights of its agent there and nowhere else. */
export function hubObjects(cluster: string, user: string): KubeObject[] {
  const label = { 'open-cluster-management.io/cluster-name': cluster };
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }];
  const roleRef = (kind: string, name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
  const own = `open-cluster-management:managedcluster:${cluster}`;
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: cluster, labels: label } },
    object(rbac, 'ClusterRole', own, {
      rules: [
        rule('cluster.open-cluster-management.io', ['managedclusters'], ['get', 'list', 'watch', 'update'], [cluster]),
        rule('cluster.open-cluster-management.io', ['managedclusters/status'], ['update', 'patch'], [cluster]),
        // Not bound to the cluster: whoever approves has to look.
        rule('certificates.k8s.io', ['certificatesigningrequests'], ['get', 'list', 'watch', 'create']),
      ],
    }),
    object(rbac, 'ClusterRoleBinding', own, { subjects, roleRef: roleRef('ClusterRole', own) }),
    object(
      rbac,
      'Role',
      `${own}:work`,
      {
        rules: [
          rule('work.open-cluster-management.io', ['manifestworks'], ['get', 'list', 'watch', 'update', 'patch']),
          rule('work.open-cluster-management.io', ['manifestworks/status'], ['update', 'patch']),
          rule('coordination.k8s.io', ['leases'], ['get', 'create', 'update', 'patch']),
          rule('addon.open-cluster-management.io', ['managedclusteraddons'], ['get', 'list', 'watch']),
          rule('addon.open-cluster-management.io', ['managedclusteraddons/status'], ['update', 'patch']),
        ],
      },
      cluster,
    ),
    object(rbac, 'RoleBinding', `${own}:work`, { subjects, roleRef: roleRef('Role', `${own}:work`) }, cluster),
  ];
}

/**
 * What OCM's klusterlet gives the work agent on a managed cluster: `admin`, what it needs itself, and whatever
 * ClusterRoles are labelled for aggregation. It has no right on argoproj kinds unless somebody grants it.
 */
export function spokeObjects(): KubeObject[] {
  const { namespace, name } = workAgentAccount;
  const aggregate = 'open-cluster-management:klusterlet-work:agent';
  const subjects = [{ kind: 'ServiceAccount', namespace, name }];
  const bind = (role: string) =>
    object(rbac, 'ClusterRoleBinding', `open-cluster-management:klusterlet-work:${role.replaceAll(':', '-')}`, {
      subjects,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    });
  const everything = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    object('v1', 'ServiceAccount', name, {}, namespace),
    {
      ...object(rbac, 'ClusterRole', 'open-cluster-management:klusterlet-work:execution', {
        rules: [
          rule('work.open-cluster-management.io', ['appliedmanifestworks', 'appliedmanifestworks/status'], everything),
          rule('apiextensions.k8s.io', ['customresourcedefinitions'], everything),
          rule('', ['namespaces', 'nodes', 'persistentvolumes'], everything),
          rule(
            'rbac.authorization.k8s.io',
            ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'],
            [...everything, 'escalate', 'bind'],
          ),
          rule('networking.k8s.io', ['networkpolicies'], everything),
          rule('', ['resourcequotas', 'limitranges'], everything),
        ],
      }),
      metadata: {
        name: 'open-cluster-management:klusterlet-work:execution',
        labels: { 'open-cluster-management.io/aggregate-to-work': 'true' },
      },
    },
    object(rbac, 'ClusterRole', aggregate, {
      aggregationRule: {
        clusterRoleSelectors: [{ matchLabels: { 'open-cluster-management.io/aggregate-to-work': 'true' } }],
      },
    }),
    bind(aggregate),
    bind('admin'),
  ];
}

function object(apiVersion: string, kind: string, name: string, body: object, namespace?: string): KubeObject {
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) }, ...body };
}

function rule(group: string, resources: string[], verbs: string[], resourceNames?: string[]) {
  return { apiGroups: [group], resources, verbs, ...(resourceNames && { resourceNames }) };
}
