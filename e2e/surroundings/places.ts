import { until } from '../../lib/base/testing.ts';
import {
  type CustomResourceDefinition,
  isForbidden,
  isInvalid,
  type KubeClient,
  type KubeObject,
  namespaces,
  secrets,
} from '../../lib/kube/index.ts';
import { helm, hubArgoCdChart, installCrds } from '../hub/index.ts';
import { admissionPolicies, admissionPolicyBindings, type SharedCluster } from '../testbed/index.ts';
import type { ChartValues, TriedChart } from './charts.ts';

/** A kind of cluster that people have. */
export interface Surrounding {
  readonly name: string;
  /** Makes a cluster one of this kind, before the chart comes. */
  prepare(cluster: SharedCluster, chart: TriedChart): Promise<void>;
  /** The values that the documentation names for it. */
  values(chart: TriedChart): ChartValues;
  /** What `helm template` has to be told of its API server. */
  readonly apiVersions?: readonly string[];
  /** Why the version before cannot be installed there. */
  readonly refusesBefore?: string;
}

const none = () => ({});
const pullSecret = 'my-registry';

/** The kinds of clusters that charts are tried on. */
export const places: readonly Surrounding[] = [
  { name: 'plain', prepare: async () => undefined, values: none },
  {
    name: 'Pod Security restricted',
    prepare: ({ client }, { spaces }) =>
      makeSpaces(client, spaces, { 'pod-security.kubernetes.io/enforce': 'restricted' }),
    values: none,
  },
  {
    name: 'quota of limits',
    async prepare({ client }, { spaces }) {
      await makeSpaces(client, spaces);
      const hard = { 'requests.cpu': '50', 'requests.memory': '50Gi', 'limits.cpu': '50', 'limits.memory': '50Gi' };
      for (const namespace of spaces) {
        await create(client, {
          apiVersion: 'v1',
          kind: 'ResourceQuota',
          metadata: { namespace, name: 'limits' },
          spec: { hard },
        });
        await until(`the quota counts in ${namespace}`, () =>
          isRefused(client, namespace, { containers: [{ name: 'a', image: 'a' }] }),
        );
      }
    },
    values: ({ limits }) => limits,
    refusesBefore: 'its hooks could not be given limits',
  },
  {
    name: 'restricted-v2',
    async prepare({ client }, { spaces }) {
      await makeSpaces(client, spaces);
      await installCrds(client, [openShiftKind]);
      await refuse(client, 'restricted-v2', spaces, [
        ...['runAsUser', 'runAsGroup', 'fsGroup'].map((field) => withinRange(`object.spec.?securityContext.?${field}`)),
        ...['containers', 'initContainers'].flatMap((list) => [
          `object.spec.?${list}.orValue([]).all(c, ${withinRange('c.?securityContext.?runAsUser')})`,
          `object.spec.?${list}.orValue([]).all(c, !c.?securityContext.?privileged.orValue(false) && !c.?securityContext.?allowPrivilegeEscalation.orValue(true))`,
          `object.spec.?${list}.orValue([]).all(c, 'ALL' in c.?securityContext.?capabilities.?drop.orValue([]))`,
        ]),
        '!object.spec.?hostNetwork.orValue(false)',
      ]);
    },
    values: ({ name }) => (name === 'argocd-pull-integration' ? { argocd: { redisRunAsUser: '' } } : {}),
    apiVersions: ['security.openshift.io/v1'],
    refusesBefore: 'its pods had fixed user ids',
  },
  {
    name: 'private registry',
    async prepare({ client }, { spaces }) {
      await makeSpaces(client, spaces);
      for (const namespace of spaces) {
        const data = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
        const type = 'kubernetes.io/dockerconfigjson';
        await client.create(secrets, { metadata: { namespace, name: pullSecret }, type, data });
      }
      await refuse(client, 'pull-secrets', spaces, [
        `object.spec.?imagePullSecrets.orValue([]).exists(s, s.name == '${pullSecret}')`,
      ]);
    },
    values: () => ({ imagePullSecrets: [{ name: pullSecret }] }),
    refusesBefore: "its hub's Argo CD took no pull Secret from the other values",
  },
  {
    name: 'own Argo CD',
    async prepare({ kubeconfig }) {
      const release = ['install', 'own', hubArgoCdChart, '--namespace', 'argocd', '--create-namespace'];
      await helm(release, { kubeconfig });
    },
    values: none,
  },
  {
    name: 'existing namespaces',
    prepare: ({ client }, { spaces }) => makeSpaces(client, spaces, { team: 'x' }),
    values: none,
  },
];

/** The kind by which charts know OpenShift. */
const openShiftKind: CustomResourceDefinition = {
  metadata: { name: 'securitycontextconstraints.security.openshift.io' },
  spec: {
    group: 'security.openshift.io',
    scope: 'Cluster',
    names: { kind: 'SecurityContextConstraints', plural: 'securitycontextconstraints' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

/** OpenShift's restricted-v2 takes no id outside the range of the namespace, and sets one where there is none. */
const withinRange = (field: string) =>
  `(!${field}.hasValue() || (${field}.value() >= 1000660000 && ${field}.value() <= 1000669999))`;

async function makeSpaces(
  client: KubeClient,
  names: readonly string[],
  labels: Record<string, string> = {},
): Promise<void> {
  for (const name of names) {
    await client.create(namespaces, { metadata: { name, labels } });
  }
}

/** Refuses pods in namespaces for which an expression is not true; resolves when that is in force. */
async function refuse(
  client: KubeClient,
  name: string,
  spaces: readonly string[],
  expressions: readonly string[],
): Promise<void> {
  await client.create(admissionPolicies, {
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      validations: expressions.map((expression) => ({ expression, message: `${name}: ${expression}` })),
    },
  });
  const selector = { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: spaces }] };
  await client.create(admissionPolicyBindings, {
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'], matchResources: { namespaceSelector: selector } },
  });
  const bad = { containers: [{ name: 'a', image: 'a', securityContext: { runAsUser: 1 } }] };
  await until(`${name} is in force`, () => isRefused(client, spaces[0] ?? '', bad));
}

async function isRefused(client: KubeClient, namespace: string, spec: object): Promise<boolean> {
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'try' }, spec };
  try {
    const made = await client.request(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, { method: 'POST', body });
    await made.body.text();
    return false;
  } catch (error) {
    // The account of a new namespace comes a moment later; its absence is Forbidden as well.
    return (isForbidden(error) || isInvalid(error)) && !String(error).includes('serviceaccount');
  }
}

async function create(client: KubeClient, object: KubeObject & { spec: object }): Promise<void> {
  const type = await client.resolve(object.apiVersion ?? '', object.kind ?? '');
  if (type === undefined) {
    throw new Error(`the cluster does not serve ${object.kind}`);
  }
  await client.create(type, object);
}
