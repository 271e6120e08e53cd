import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, hubArgoCdChart, withoutHub } from './helm.ts';

const namespace = ['--namespace', 'open-cluster-management-agent-addon'];

interface Rendered extends KubeObject {
  spec?: { template?: { spec?: PodSpec }; [field: string]: unknown };
  rules?: { apiGroups?: string[]; resources?: string[]; verbs: string[]; resourceNames?: string[] }[];
  data?: Record<string, string>;
  roleRef?: { name: string };
  subjects?: { kind: string; name: string; namespace: string }[];
}

async function render(values: Record<string, unknown> = {}): Promise<Rendered[]> {
  const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  const text = await helm([
    'template',
    'argocd-agent-addon',
    addonChart,
    ...namespace,
    ...withoutHub(addonChart),
    ...sets,
  ]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object): object is Rendered => object !== null);
}

function named(objects: Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) {
    throw new Error(`no ${kind} ${name} was rendered`);
  }
  return found;
}

const controllerArgs = (objects: Rendered[]) =>
  named(objects, 'Deployment', 'argocd-agent-addon-controller').spec?.template?.spec?.containers[0]?.args ?? [];

const podsOf = (objects: Rendered[]) =>
  objects.flatMap((object) => (object.spec?.template?.spec ? [{ object, pod: object.spec.template.spec }] : []));

describe('the charts', () => {
  it.each([addonChart, agentChart, hubArgoCdChart])('%s passes helm lint', async (chart) => {
    expect(await helm(['lint', chart, '--strict'])).toContain('0 chart(s) failed');
  });

  it('render without values everything that a hub needs', async () => {
    const objects = await render();
    expect(named(objects, 'GitOpsCluster', 'gitops-cluster').spec).toEqual({
      placementRef: { apiVersion: 'cluster.open-cluster-management.io/v1beta1', kind: 'Placement', name: 'placement' },
      argoCDAgentAddon: { mode: 'managed' },
    });
    expect(named(objects, 'ClusterManagementAddOn', 'argocd-agent-addon').metadata.annotations).toEqual({
      'addon.open-cluster-management.io/lifecycle': 'self',
    });
    expect(named(objects, 'Deployment', 'argocd-agent-addon-controller').metadata.namespace).toBe(
      'open-cluster-management-agent-addon',
    );
    expect(named(objects, 'Deployment', 'argocd-agent-principal').metadata.namespace).toBe('argocd');
    expect(named(objects, 'ConfigMap', 'ocm-placement-generator').data).toEqual({
      apiVersion: 'cluster.open-cluster-management.io/v1beta1',
      kind: 'placementdecisions',
      statusListKey: 'decisions',
      matchKey: 'clusterName',
    });
  });

  it('let those read PlacementDecisions who generate Applications, argocd-server for previews', async () => {
    const subjectsOf = async (values = {}) =>
      named(await render(values), 'RoleBinding', 'argocd-applicationset-placement').subjects;
    const one = (name: string) => ({ kind: 'ServiceAccount', name, namespace: 'argocd' });
    expect(await subjectsOf()).toEqual([one('argocd-applicationset-controller'), one('argocd-server')]);
    expect(await subjectsOf({ serverServiceAccount: 'gitops-server' })).toContainEqual(one('gitops-server'));
  });

  it('tell principal and agents the same mapping', async () => {
    const byNamespace = await render({ 'principal.destinationBasedMapping': false });
    expect(named(byNamespace, 'GitOpsCluster', 'gitops-cluster').spec).toMatchObject({
      argoCDAgentAddon: { mode: 'managed', destinationBasedMapping: false },
    });
    expect(named(byNamespace, 'ConfigMap', 'argocd-agent-params').data).toMatchObject({
      'principal.destination-based-mapping': 'false',
    });
  });

  it('give every container the restricted profile, requests, a memory limit and no writable root', async () => {
    for (const { object, pod } of podsOf(await render())) {
      const where = `${object.kind} ${object.metadata.name}`;
      const podContext = pod.securityContext as Record<string, unknown>;
      expect(podContext, where).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const container of pod.containers) {
        expect(container.securityContext, where).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources, where).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
      }
    }
  });

  it('give no rights with a wildcard, and those on Secrets in the namespaces of principals only', async () => {
    const values = { 'gitOpsCluster.namespace': 'fleets', 'controller.gitOpsNamespaces': ['team-a', 'fleets'] };
    const objects = await render(values);
    const holding: string[] = [];
    for (const object of objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')) {
      for (const rule of object.rules ?? []) {
        const all = [...(rule.apiGroups ?? []), ...(rule.resources ?? []), ...rule.verbs];
        expect(all, `${object.kind} ${object.metadata.name}`).not.toContain('*');
        if (rule.resources?.includes('secrets')) {
          holding.push(`${object.kind} ${object.metadata.name} in ${object.metadata.namespace}`);
        }
      }
    }
    expect(holding.filter((role) => role.includes('addon-controller')).sort()).toEqual([
      'Role argocd-agent-addon-controller in argocd',
      'Role argocd-agent-addon-controller in fleets',
      'Role argocd-agent-addon-controller in team-a',
    ]);
    expect(holding.filter((role) => role.startsWith('ClusterRole'))).toEqual([]);
    expect(controllerArgs(objects)).toContain('--watch-namespaces=argocd,fleets,team-a');
  });

  it("give the controller no right on Secrets in the GitOpsCluster's namespace, but that to delete it before helm uninstall", async () => {
    const objects = await render({ 'gitOpsCluster.namespace': 'fleets' });
    expect(controllerArgs(objects)).toContain('--watch-namespaces=argocd');
    expect(controllerArgs(objects)).toContain('--argocd-namespace=argocd');
    const roles = objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.namespace === 'fleets');
    expect(roles.flatMap(({ rules }) => rules ?? []).filter(({ verbs }) => !verbs.includes('watch'))).toEqual([
      {
        apiGroups: ['apps.open-cluster-management.io'],
        resources: ['gitopsclusters'],
        resourceNames: ['gitops-cluster'],
        verbs: ['delete'],
      },
    ]);
    expect(roles.flatMap(({ rules = [] }) => rules.flatMap(({ resources }) => resources))).not.toContain('secrets');
    expect(named(objects, 'RoleBinding', 'argocd-agent-addon-controller-uninstall').metadata.namespace).toBe('fleets');
  });

  it('give the controller the same rights everywhere if principals may be in any namespace', async () => {
    const [one, all] = [await render(), await render({ 'controller.allNamespaces': true })];
    const name = 'argocd-agent-addon-controller';
    const rules = (objects: Rendered[]) =>
      objects
        .filter(({ kind, metadata }) => (kind === 'ClusterRole' || kind === 'Role') && metadata.name === name)
        .flatMap((role) => role.rules ?? [])
        .map((rule) => JSON.stringify(rule))
        .sort();
    expect(rules(all)).toEqual(rules(one));
    expect(all.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === name)).toEqual([]);
    expect(controllerArgs(all).filter((arg) => arg.includes('watch-namespaces'))).toEqual([]);
  });

  it("bind the principal's environment to the keys of argocd-agent's ConfigMap", async () => {
    const objects = await render({ 'principal.params': { 'principal.event-processors': 20 } });
    const params = named(objects, 'ConfigMap', 'argocd-agent-params').data ?? {};
    expect(params).toMatchObject({
      'principal.namespace': 'argocd',
      'principal.destination-based-mapping': 'true',
      'principal.allowed-namespaces': '*',
      'principal.event-processors': '20',
    });
    const off = { 'principal.redisProxy.enabled': false, 'hubArgoCD.enabled': false };
    const without = named(await render(off), 'ConfigMap', 'argocd-agent-params');
    expect(Object.keys(without.data ?? {})).not.toContain('principal.redis.server.address');
    const [container] = named(objects, 'Deployment', 'argocd-agent-principal').spec?.template?.spec?.containers ?? [];
    const bound = new Map(
      (container?.env ?? []).map(({ name, valueFrom }) => [
        (valueFrom?.configMapKeyRef as { key?: string } | undefined)?.key,
        name,
      ]),
    );
    expect(bound.get('principal.auth')).toBe('ARGOCD_PRINCIPAL_AUTH');
    expect(Object.keys(params).filter((key) => !bound.has(key))).toEqual([]);
  });

  it('serve live access: both proxies, and a server of Argo CD that looks for its cache in the one of them', async () => {
    const objects = await render({ 'hubArgoCD.install': true });
    for (const name of ['argocd-agent-resource-proxy', 'argocd-agent-redis-proxy']) {
      named(objects, 'Service', name);
    }
    const [policy] = objects.filter(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && /principal$/.test(metadata.name),
    );
    expect(JSON.stringify(policy?.spec?.ingress)).toMatch(/6379.*9090/);
    const redisOf = (from: Rendered[]) =>
      named(from, 'Deployment', 'argocd-server').spec?.template?.spec?.containers[0]?.env?.find(
        ({ name }) => name === 'REDIS_SERVER',
      )?.value;
    expect(redisOf(objects)).toBe('argocd-agent-redis-proxy:6379');
    const off = { 'hubArgoCD.install': true, 'principal.redisProxy.enabled': false };
    await expect(render(off)).rejects.toThrow('hubArgoCD.serverRedisAddress is the Redis proxy of a principal that');
    await expect(render({ ...off, 'hubArgoCD.install': false })).resolves.toBeDefined();
    expect(redisOf(await render({ ...off, 'hubArgoCD.serverRedisAddress': 'argocd-redis:6379' }))).toBe(
      'argocd-redis:6379',
    );
  });

  it('run an application controller for the hub itself when that is wanted, and none that takes the fleet', async () => {
    const controllers = (objects: Rendered[]) =>
      objects.filter(
        ({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'argocd-application-controller',
      );
    const wanted = { 'hubArgoCD.install': true, 'hubArgoCD.applicationController.enabled': true };
    expect(controllers(await render({ 'hubArgoCD.install': true }))).toEqual([]);
    expect(controllers(await render({ ...wanted, 'hubArgoCD.install': false }))).toEqual([]);
    expect(controllers(await render(wanted))).toHaveLength(1);
    const roleNames = (objects: Rendered[]) =>
      objects
        .filter(({ kind, metadata }) => kind === 'ClusterRoleBinding' && metadata.name.startsWith('argocd-hub-'))
        .map(({ metadata, roleRef }) => `${metadata.name} ${roleRef?.name}`);
    expect(roleNames(await render(wanted))).toEqual([
      'argocd-hub-application-controller:argocd-hub-application-controller argocd-hub-application-controller',
      'argocd-hub-server:argocd-hub-server argocd-hub-server',
    ]);
    const limited = await render({ ...wanted, 'hubArgoCD.applicationController.clusterRole': 'mine' });
    expect(roleNames(limited)).toEqual(['argocd-hub-application-controller:mine mine', 'argocd-hub-server:mine mine']);
    expect(JSON.stringify(limited.filter(({ kind }) => kind === 'ClusterRole'))).not.toContain('"*"');
    await expect(render({ ...wanted, 'hubArgoCD.tag': 'v3.3.9' })).rejects.toThrow(
      'hubArgoCD.applicationController.enabled needs Argo CD 3.4 or later, and hubArgoCD.tag is v3.3.9',
    );
    await expect(render({ ...wanted, 'hubArgoCD.tag': 'latest' })).resolves.toBeDefined();
  });

  it("give the plain agent's chart the rights for live access that are asked for", async () => {
    const rolesOf = async (liveAccess: string) =>
      parseAllDocuments(await helm(['template', 'edge', agentChart, '--set', `rbac.liveAccess=${liveAccess}`]))
        .map((document) => document.toJS() as (Rendered & { roleRef?: { name: string } }) | null)
        .flatMap((object) =>
          object?.kind?.startsWith('ClusterRole') ? (object.roleRef?.name ?? object.metadata.name) : [],
        );
    expect(await rolesOf('None')).toEqual([]);
    expect(await rolesOf('view')).toEqual(['view']);
    expect(await rolesOf('Full')).toEqual(['edge-agent-helm-live-access', 'edge-agent-helm-live-access']);
  });

  it("give the plain agent's chart the right to impersonate service accounts only when it is asked for", async () => {
    const impersonates = async (...values: string[]) =>
      parseAllDocuments(await helm(['template', 'edge', agentChart, ...values]))
        .map((document) => document.toJS() as { rules?: { resources: string[]; verbs: string[] }[] } | null)
        .flatMap((object) => object?.rules ?? [])
        .filter(({ verbs }) => verbs.includes('impersonate') || verbs.includes('*'))
        .flatMap(({ resources }) => resources);
    expect(await impersonates('--set', 'rbac.liveAccess=Full')).toEqual([]);
    expect(await impersonates('--set', 'rbac.impersonation=true')).toEqual(['serviceaccounts']);
    expect(await impersonates('--set', 'rbac.impersonation=true,rbac.create=false')).toEqual([]);
  });

  it('accept the values of the original chart', async () => {
    const objects = await render({
      image: 'registry.example/fleet',
      tag: 'v1',
      replicas: 2,
      imagePullSecrets: [{ name: 'pull' }],
      operatorImage: 'quay.io/argoprojlabs/argocd-operator',
      operatorImageTag: 'v0.18.0',
      principalServiceType: 'NodePort',
      'global.argoCDNamespace': 'gitops',
      'global.argoCDOperatorNamespace': 'gitops-operator',
      'hubArgoCD.enabled': false,
      'argoCDAgent.image': 'registry.example/agent:v2',
      'gitOpsCluster.namespace': 'gitops',
      'gitOpsCluster.name': 'fleet',
      'gitOpsCluster.principalServerAddress': 'principal.example.com',
      'gitOpsCluster.principalServerPort': 8443,
      'gitOpsCluster.mode': 'autonomous',
      'gitOpsCluster.argoCDAgentAddon.agentNamespace': 'agent',
      'gitOpsCluster.argoCDAgentAddon.operatorNamespace': 'operator',
      'gitOpsCluster.customArgoCDCR.enabled': true,
      'controller.namespace': 'gitops',
    });
    expect(named(objects, 'GitOpsCluster', 'fleet')).toMatchObject({
      metadata: { namespace: 'gitops' },
      spec: {
        argoCDAgentAddon: {
          mode: 'autonomous',
          principalServerAddress: 'principal.example.com',
          principalServerPort: '8443',
          agentNamespace: 'agent',
          operatorNamespace: 'operator',
          argoCDCRManifestWork: { manifests: [{ kind: 'ArgoCD', metadata: { namespace: 'agent' } }] },
        },
      },
    });
    const controller = named(objects, 'Deployment', 'argocd-agent-addon-controller');
    expect(controller.metadata.namespace).toBe('gitops');
    expect(controller.spec?.template?.spec?.containers[0]?.image).toBe('registry.example/fleet:v1');
    const principal = named(objects, 'Deployment', 'argocd-agent-principal').spec?.template?.spec;
    expect(principal?.containers[0]?.image).toBe('registry.example/agent:v2');
    expect(principal?.imagePullSecrets).toEqual([{ name: 'pull' }]);
    expect(named(objects, 'PodDisruptionBudget', 'argocd-agent-addon-controller').spec).toMatchObject({
      minAvailable: 1,
    });
    expect(objects.some(({ metadata }) => metadata.name === 'argocd-server')).toBe(false);
  });

  it('give the controller a sink of events and its token only when they are asked for', async () => {
    const controller = (objects: Rendered[]) => {
      const pod = named(objects, 'Deployment', 'argocd-agent-addon-controller').spec?.template?.spec;
      const [container] = pod?.containers ?? [];
      const env = (container?.env ?? []) as readonly { name: string; value?: string }[];
      const sink = env.filter((one) => one.name.startsWith('EVENTS_'));
      return {
        env: Object.fromEntries(sink.map((one) => [one.name, one.value])),
        mounts: JSON.stringify(container?.volumeMounts),
        volumes: JSON.stringify(pod?.volumes),
      };
    };
    const without = controller(await render({ 'controller.events.tokenSecret': 'sink' }));
    expect(without.env).toEqual({});
    expect(without.volumes).not.toContain('sink');
    const url = 'https://events.example.com/fleet';
    const open = controller(await render({ 'controller.events.sinkUrl': url }));
    expect(open.env).toEqual({ EVENTS_SINK_URL: url, EVENTS_MODE: 'binary' });
    const values = { sinkUrl: url, tokenSecret: 'sink', mode: 'structured' };
    const { env, mounts, volumes } = controller(await render({ 'controller.events': values }));
    const path = '/app/config/events/token';
    expect(env).toEqual({ EVENTS_SINK_URL: url, EVENTS_MODE: 'structured', EVENTS_SINK_TOKEN_PATH: path });
    expect(mounts).toContain('"/app/config/events","readOnly":true');
    expect(volumes).toContain('"secretName":"sink","items":[{"key":"token","path":"token"}]');
    await expect(render({ 'controller.events.mode': 'batch' })).rejects.toThrow('mode');
  });

  it("let the controller restart programs of the hub's own Argo CD only with consent, and those that read its settings", async () => {
    const name = 'argocd-agent-addon-controller-configure';
    const unasked = await render({ 'hubArgoCD.install': false });
    expect(unasked.some(({ metadata }) => metadata.name === name)).toBe(false);
    expect(controllerArgs(unasked).filter((arg) => arg.includes('configure'))).toEqual([]);
    const asked = await render({ 'hubArgoCD.configure': true, 'global.argoCDNamespace': 'gitops' });
    expect(controllerArgs(asked)).toContain('--configure-argocd=gitops');
    const { metadata, rules } = named(asked, 'Role', name);
    expect(metadata.namespace).toBe('gitops');
    const apps = { apiGroups: ['apps'], verbs: ['patch'] };
    const readers = ['argocd-server', 'argocd-repo-server', 'argocd-notifications-controller'];
    expect(rules).toEqual([
      { ...apps, resources: ['deployments'], resourceNames: readers },
      { ...apps, resources: ['statefulsets'], resourceNames: ['argocd-application-controller'] },
    ]);
  });

  it("let the controller restart a principal of argocd-agent's own image or of somebody else, and no other", async () => {
    const mayRestart = async (values: Record<string, unknown>) =>
      JSON.stringify(named(await render(values), 'Role', 'argocd-agent-addon-controller').rules).includes(
        '"openshift-gitops-agent-principal"',
      );
    expect(await mayRestart({})).toBe(false);
    expect(await mayRestart({ 'principal.enabled': false, 'hubArgoCD.enabled': false })).toBe(true);
    expect(await mayRestart({ 'argoCDAgent.image': 'quay.io/argoprojlabs/argocd-agent:v1' })).toBe(true);
  });

  it('give the controller what clusters run and how they follow, and the GitOpsCluster what only it follows', async () => {
    const everywhere = { type: 'Progressive', progressive: { maxConcurrency: 5, maxFailures: '20%' } };
    const here = { type: 'ProgressivePerGroup', progressivePerGroup: { progressDeadline: 'None' } };
    const controllerOf = (objects: Rendered[]) => {
      const [container] =
        named(objects, 'Deployment', 'argocd-agent-addon-controller').spec?.template?.spec?.containers ?? [];
      return Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
    };
    const labels = { labels: ['env'], claims: ['id.k8s.io'] };
    // The kubelet makes one $ of two.
    const settings = { config: { 'a.b': '$$x $(POD_NAME) "y"' } };
    const objects = await render({
      'controller.clusterLabels': labels,
      'gitOpsCluster.argoCDAgentAddon.clusterLabels': { labels: [] },
      'controller.clusterSettings': settings,
      'gitOpsCluster.argoCDAgentAddon.clusterSettings': { replicas: { repoServer: 2 } },
      'managedArgoCD.operatorImage': 'registry.example/operator:v1',
      'controller.rolloutStrategy': everywhere,
      'gitOpsCluster.argoCDAgentAddon.rolloutStrategy': here,
    });
    const { OPERATOR_IMAGE: image, ROLLOUT_STRATEGY: text, CLUSTER_LABELS: list, ...env } = controllerOf(objects);
    expect(JSON.parse(String(env.CLUSTER_SETTINGS).replaceAll('$$', '$'))).toEqual(settings);
    expect(JSON.parse(String(list))).toEqual(labels);
    expect(image).toBe('registry.example/operator:v1');
    expect(JSON.parse(String(text))).toEqual(everywhere);
    expect(named(objects, 'GitOpsCluster', 'gitops-cluster').spec).toMatchObject({
      argoCDAgentAddon: {
        rolloutStrategy: here,
        clusterLabels: { labels: [] },
        clusterSettings: { replicas: { repoServer: 2 } },
      },
    });
    const unset = controllerOf(await render());
    expect(
      Object.keys(unset).filter((name) => /OPERATOR_IMAGE|ROLLOUT_STRATEGY|CLUSTER_LABELS|CLUSTER_SETTINGS/.test(name)),
    ).toEqual([]);
  });

  it.each([
    ['replicas', 'two', "at '/replicas': got string, want integer"],
    ['gitOpsCluster.mode', 'manged', "at '/gitOpsCluster/mode': value must be one of 'managed', 'autonomous'"],
    ['gitOpsCluster.principalServerPort', 99999, "at '/gitOpsCluster/principalServerPort': maximum: got 99,999"],
    ['gitOpsCluster.principalServerPort', '99999', "at '/gitOpsCluster/principalServerPort': '99999' does not match"],
    ['gitOpsCluster.principalServerPort', true, "at '/gitOpsCluster/principalServerPort': got boolean, want"],
    [
      'gitOpsCluster.argoCDAgentAddon.agentNamespace',
      'kube-system',
      'gitOpsCluster.argoCDAgentAddon.agentNamespace is kube-system: it must not be a namespace of Kubernetes',
    ],
    ['gitOpsCluster.principalServerPort', 'https', "at '/gitOpsCluster/principalServerPort': 'https' does not match"],
    ['gitOpsCluster.argoCDAgentAddon.agentNamespace', 'A_b', "at '/gitOpsCluster/argoCDAgentAddon/agentNamespace'"],
    ['principal.destinationBasedMapping', 'yes', "at '/principal/destinationBasedMapping': got string, want boolean"],
    ['principal.auth', 'kerberos:x', "at '/principal/auth': 'kerberos:x' does not match pattern"],
    ['controller.rolloutStrategy', { type: 'Canary' }, "at '/controller/rolloutStrategy/type': value must be one of"],
    [
      'controller.clusterLabels',
      { labels: ['*env'] },
      "at '/controller/clusterLabels/labels/0': '*env' does not match",
    ],
    [
      'controller.clusterLabels',
      { claims: ['argocd.argoproj.io/*'] },
      "at '/controller/clusterLabels/claims/0': 'not' failed",
    ],
    [
      'controller.clusterSettings',
      { params: { 'controller.diff.server.side': true } },
      "at '/controller/clusterSettings/params/controller.diff.server.side': got boolean, want string",
    ],
    [
      'gitOpsCluster.argoCDAgentAddon.clusterSettings',
      { parms: {} },
      "at '/gitOpsCluster/argoCDAgentAddon/clusterSettings': additional properties 'parms' not allowed",
    ],
    ['imagePullSecrets', 'pull', "at '/imagePullSecrets': got string, want array"],
    ['hubArgoCD.install', 'maybe', "at '/install': value must be one of 'auto'"],
    ['hubArgoCD.applicationController.enabled', 'yes', "at '/applicationController/enabled': got string, want boolean"],
    ['hubArgoCD.server.replicas', 0, "at '/server/replicas': minimum: got 0, want 1"],
    ['gitopsCluster.mode', 'managed', "additional properties 'gitopsCluster' not allowed"],
  ])('name the value that is wrong: %s=%j', async (key, value, message) => {
    await expect(render({ [key]: value })).rejects.toThrow(message);
  });
});
