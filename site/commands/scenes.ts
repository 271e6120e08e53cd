import { objects } from './scene-objects.ts';
import type { ShellLine } from './shell.ts';

/** What the lines of a page suppose, from one line on until the next scene of the page begins. Each scene has new clusters. */
export interface PageScene {
  readonly page: string;
  /** The start of the line with which it begins. */
  readonly from: string;
  /** What is on the hub. */
  readonly hub?: readonly object[];
  /** What is on a cluster, contexts `cluster1`, `edge` and `east`. Without it there is only the hub. */
  readonly cluster?: readonly object[];
  /** Shell that the page supposes somebody ran before. */
  readonly first?: readonly string[];
  /** What happens before a line, by its start: what the text between two lines says, and what pods would do. */
  readonly before?: Readonly<Record<string, readonly string[]>>;
  /** What a reader puts in place of words of the page. */
  readonly replace?: Readonly<Record<string, string>>;
  /** Exit codes other than 0 that the page announces, by the start of the line. */
  readonly codes?: Readonly<Record<string, readonly number[]>>;
}

const { argocd, namespace, configMap, deployment, secret, application, cluster1, gitOpsCluster, addOn } = objects;
const installAddOn =
  'helm install argocd-agent-addon ./charts/argocd-agent-addon --namespace open-cluster-management-agent-addon --create-namespace';
/** What the Job of the chart does, which no node runs. */
const makePki = 'argocd-agent pki --principal-address principal.example.com';
const workloads = ['argocd-server', 'argocd-repo-server'].map((name) => deployment(name));
const offline = JSON.stringify(
  gitOpsCluster({ principalServerAddress: 'principal.example.com', principalServerPort: '443' }),
);
const addOnConfig = JSON.stringify({
  apiVersion: 'addon.open-cluster-management.io/v1alpha1',
  kind: 'AddOnDeploymentConfig',
  metadata: { name: 'config', namespace: 'argocd' },
  spec: {},
});

/** All scenes. Those of one page are in the order of its lines. */
export const scenes: readonly PageScene[] = [
  { page: 'CONTRIBUTING.md', from: 'make help' },
  { page: 'README.md', from: 'helm install' },
  { page: 'docs/architecture.md', from: 'kubectl', hub: [argocd, secret('argocd-agent-ca')] },
  {
    page: 'docs/argocd-agentctl.md',
    from: 'source',
    hub: [argocd, namespace('east'), application('shop', 'east')],
    cluster: [argocd],
    first: [
      'argocd-agentctl pki init --key-algorithm=ecdsa-p256',
      'argocd-agentctl pki issue principal --ip=127.0.0.1 --dns=hub.example.com --key-algorithm=ecdsa-p256',
      'argocd-agentctl pki issue resource-proxy --dns=argocd-agent-resource-proxy --key-algorithm=ecdsa-p256',
      'argocd-agentctl jwt create-key',
      'argocd-agentctl agent create east --key-algorithm=ecdsa-p256',
      'argocd-agentctl pki issue agent east --principal-context hub --agent-context east --key-algorithm=ecdsa-p256',
    ],
    // Nothing runs: doctor says so.
    codes: { 'argocd-agentctl doctor': [1] },
  },
  {
    page: 'docs/backup.md',
    from: 'kubectl',
    hub: [
      argocd,
      deployment('argocd-agent-principal'),
      configMap('argocd-agent-principal-identity'),
      objects.event('ApplicationKept'),
    ],
  },
  { page: 'docs/basic-pull-model.md', from: 'helm install', hub: [argocd] },
  {
    page: 'docs/basic-pull-model.md',
    from: 'kubectl',
    hub: [argocd, secret('cluster1', { 'app.kubernetes.io/managed-by': 'argocd-pull-integration-basic' })],
  },
  {
    page: 'docs/clusters.md',
    from: 'gitops-controller',
    hub: [
      argocd,
      ...cluster1,
      gitOpsCluster({ principalServerAddress: 'principal.example.com', principalServerPort: '443' }),
      addOn,
      secret('cluster1', { 'argocd.argoproj.io/secret-type': 'cluster' }),
    ],
    first: [
      `printf '%s' '${offline}' > gitopscluster.yaml`,
      `printf '%s' '${addOnConfig}' > config.yaml`,
      'mkdir crds && kubectl get crds applications.argoproj.io appprojects.argoproj.io -o yaml > crds/crds.yaml',
    ],
    replace: { '<image>': 'registry.example.com/agent:1' },
  },
  { page: 'docs/fleet-page.md', from: 'kubectl', hub: [argocd, secret('argocd-secret')] },
  { page: 'docs/install.md', from: installAddOn.slice(0, 30) },
  {
    page: 'docs/install.md',
    from: 'kubectl create namespace open-cluster-management-agent-addon',
    // The hub has no Argo CD.
    first: ['kubectl delete crd applications.argoproj.io applicationsets.argoproj.io appprojects.argoproj.io'],
  },
  { page: 'docs/install.md', from: 'helm upgrade argocd-agent-addon', first: [installAddOn] },
  {
    page: 'docs/install.md',
    from: `${installAddOn} --set image=`,
  },
  {
    page: 'docs/install.md',
    from: 'helm install argocd-agent-principal',
    hub: [argocd],
    cluster: [argocd],
    before: { 'argocd-agent enroll cluster1': [makePki] },
  },
  {
    page: 'docs/install.md',
    from: 'argocd-agent enroll edge-agent',
    hub: [argocd],
    cluster: [argocd],
    first: [makePki],
  },
  {
    page: 'docs/install.md',
    from: 'helm uninstall',
    hub: [
      argocd,
      configMap('argocd-cmd-params-cm'),
      ...workloads,
      objects.statefulSet('argocd-application-controller'),
    ],
    first: [`${installAddOn} --set hubArgoCD.enabled=false`],
  },
  {
    page: 'docs/live-access.md',
    from: 'cluster=cluster1',
    hub: [argocd],
    first: [
      'argocd-agentctl pki init --key-algorithm=ecdsa-p256',
      'argocd-agentctl agent create cluster1 --key-algorithm=ecdsa-p256',
      "kubectl -n argocd get secret argocd-agent-ca -o jsonpath='{.data.tls\\.crt}' | base64 -d > ca.pem",
      'kubectl -n argocd create configmap argocd-agent-ca-bundle --from-file=ca-bundle.crt=ca.pem',
      'kubectl -n argocd get secret argocd-agent-ca -o json | sed s/argocd-agent-ca/argocd-cluster-client-cluster1/ | kubectl create -f -',
    ],
  },
  {
    page: 'docs/second-hub.md',
    from: 'argocd-agentctl pki issue ha-admin',
    hub: [argocd],
    first: ['argocd-agentctl pki init --key-algorithm=ecdsa-p256'],
  },
  {
    page: 'docs/synchronisation.md',
    from: 'kubectl',
    hub: [argocd, application('shop')],
    replace: { '<name>': 'shop' },
  },
  {
    page: 'docs/takeover.md',
    from: 'helm get values',
    // The release that adopt makes Helm forget has a name that no release of the page has.
    first: [
      'mkdir old && printf "apiVersion: v2\\nname: old\\nversion: 1.0.0\\n" > old/Chart.yaml',
      'helm install old ./old --namespace old-namespace --create-namespace --set replicas=2',
    ],
    replace: { 'OLD-NAMESPACE': 'old-namespace', OLD: 'old' },
  },
  {
    page: 'docs/takeover.md',
    from: 'kubectl apply -k .',
    hub: [argocd],
    first: [
      'printf "resources: [%s]\\n" "$(realpath --relative-to=. install/kubernetes/principal)" > kustomization.yaml',
    ],
  },
  {
    page: 'docs/takeover.md',
    from: 'helm upgrade RELEASE ./charts/argocd-agent-principal',
    hub: [argocd],
    first: [
      'helm install release ./charts/argocd-agent-principal --namespace argocd --set pki.enabled=false',
      'echo "replicaCount: 1" > values.yaml',
    ],
    replace: { RELEASE: 'release' },
  },
  {
    page: 'docs/takeover.md',
    from: 'helm upgrade RELEASE ./charts/argocd-agent-agent',
    hub: [argocd],
    first: [
      'printf "server: principal.example.com\\nagentMode: managed\\n" > values.yaml',
      'helm install release ./charts/argocd-agent-agent --namespace argocd --values values.yaml',
    ],
    replace: { RELEASE: 'release' },
  },
  {
    page: 'docs/troubleshooting.md',
    from: 'kubectl',
    hub: [
      argocd,
      ...cluster1,
      gitOpsCluster({}),
      addOn,
      objects.manifestWork,
      secret('cluster-cluster1', { 'argocd.argoproj.io/secret-type': 'cluster' }),
      application('shop', 'cluster1'),
      configMap('argocd-agent-params'),
      deployment('argocd-agent-agent'),
    ],
    replace: { '<cluster>': 'cluster1', '<agent>': 'cluster1', '<name>': 'shop' },
  },
  { page: 'docs/upgrades.md', from: 'helm upgrade argocd-agent-addon', first: [installAddOn] },
  {
    page: 'docs/upgrades.md',
    from: 'helm upgrade argocd-agent-principal',
    hub: [argocd],
    first: [
      'helm install argocd-agent-principal ./charts/argocd-agent-principal --namespace argocd --set pki.enabled=false',
      'helm install argocd-agent ./charts/argocd-agent-agent --namespace argocd --set server=principal.example.com',
    ],
  },
  {
    page: 'docs/upgrades.md',
    from: 'helm rollback',
    first: [installAddOn, installAddOn.replace('install', 'upgrade').replace(' --create-namespace', '')],
  },
  { page: 'charts/argocd-agent-addon/README.md', from: 'helm install' },
  { page: 'charts/argocd-agent-agent/README.md', from: 'helm install', hub: [argocd] },
  {
    page: 'charts/argocd-agent-principal/README.md',
    from: 'helm install',
    hub: [argocd],
    cluster: [argocd],
    before: { 'argocd-agent enroll': [makePki] },
  },
  { page: 'charts/argocd-pull-integration/README.md', from: 'helm install', hub: [argocd] },
];

/** Where each scene's lines are on its page: from its first line until the next scene's. */
const begins = (line: Pick<ShellLine, 'text'>, { from }: PageScene) => line.text.startsWith(from);

/** The lines of each scene. A scene that begins nowhere has none. */
export function linesByScene(lines: readonly ShellLine[]): ReadonlyMap<PageScene, ShellLine[]> {
  const found = new Map<PageScene, ShellLine[]>(scenes.map((scene) => [scene, []]));
  for (const page of new Set(lines.map((line) => line.page))) {
    const [...waiting] = scenes.filter((scene) => scene.page === page);
    let current: PageScene | undefined;
    for (const line of lines.filter((one) => one.page === page)) {
      if (waiting[0] !== undefined && begins(line, waiting[0])) {
        current = waiting.shift();
      }
      if (current !== undefined) {
        found.get(current)?.push(line);
      }
    }
  }
  return found;
}
