import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster, playKubelet, type SharedCluster } from '../../e2e/testbed/index.ts';
import { ReaderFolder } from './testing/reader-folder.ts';

// The commands of the originals' guides, in their order, with what docs/install.md says to type instead. `-k` names this
// checkout. No pod runs: a stand-in says that it does.

const hub = '--principal-context hub --principal-namespace argocd';
const cluster = '--agent-context cluster1 --agent-namespace argocd';

/** Without Open Cluster Management: argocd-agent's guide for Kubernetes. */
const agentGuide = [
  'kubectl create namespace argocd --context hub',
  `argocd-agentctl pki init ${hub}`,
  `argocd-agentctl pki issue principal ${hub} --ip 127.0.0.1,192.0.2.1 --dns localhost,principal.example.com --upsert`,
  `argocd-agentctl pki issue resource-proxy ${hub} --ip 127.0.0.1,192.0.2.2 --dns localhost,proxy.example.com --upsert`,
  `argocd-agentctl jwt create-key ${hub} --upsert`,
  'kubectl apply -n argocd -k install/kubernetes/principal --context hub',
  `test "$(kubectl get configmap argocd-agent-params -n argocd --context hub -o jsonpath='{.data.principal\\.auth}')" = 'mtls:CN=([^,]+)'`,
  `kubectl patch configmap argocd-agent-params -n argocd --context hub --patch '{"data":{"principal.allowed-namespaces":"my-first-agent"}}'`,
  'kubectl rollout restart deployment argocd-agent-principal -n argocd --context hub',
  `kubectl patch svc argocd-agent-principal -n argocd --context hub --patch '{"spec":{"type":"LoadBalancer"}}'`,
  'kubectl create namespace argocd --context cluster1',
  `argocd-agentctl agent create my-first-agent ${hub} --resource-proxy-server 192.0.2.1:9090`,
  `argocd-agentctl pki issue agent my-first-agent --principal-context hub ${cluster} --upsert`,
  `argocd-agentctl pki propagate ${hub} ${cluster} --force`,
  'kubectl get secret argocd-agent-client-tls argocd-agent-ca -n argocd --context cluster1',
  'kubectl create namespace my-first-agent --context hub',
  'kubectl apply -n argocd -k install/kubernetes/agent --context cluster1',
  `kubectl patch configmap argocd-agent-params -n argocd --context cluster1 --patch '{"data":{"agent.server.address":"192.0.2.1","agent.server.port":"443","agent.mode":"managed","agent.creds":"mtls:any"}}'`,
  'kubectl rollout restart deployment argocd-agent-agent -n argocd --context cluster1',
  `argocd-agentctl agent list ${hub} | grep my-first-agent`,
  'kubectl create secret generic argocd-agent-agent-userpass -n argocd --context cluster1 --from-literal credentials=a:b',
  'kubectl create secret generic argocd-agent-principal-userpass -n argocd --context hub --from-literal passwd=a:c',
];

/** On a hub of Open Cluster Management: argocd-pull-integration's README. */
const pullGuide = [
  'helm install argocd-agent-addon ./charts/argocd-agent-addon --namespace argocd --create-namespace',
  'kubectl get gitopscluster -n argocd --context hub',
  'kubectl get clustermanagementaddon',
];

let onHub: SharedCluster;
let ocmHub: SharedCluster;
let onCluster: SharedCluster;
let folder: string;
let reader: ReaderFolder;
const ended = new AbortController();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'guides-'));
  const borrow = (name: string) => borrowCluster({ name });
  [onHub, ocmHub, onCluster] = await Promise.all([borrow('hub'), borrow('ocm-hub'), borrow('cluster')]);
  for (const { client } of [onHub, ocmHub, onCluster]) {
    void playKubelet(client, ended.signal).catch(() => undefined);
  }
  reader = await ReaderFolder.prepare(folder, { hub: onHub.kubeconfig, cluster: onCluster.kubeconfig });
});
afterAll(async () => {
  ended.abort();
  await Promise.all([onHub?.stop(), ocmHub?.stop(), onCluster?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

async function runs(line: string): Promise<void> {
  const { code, out, err } = await reader.run(line);
  expect(code, `${line}\n${out}\n${err}`).toBe(0);
}

test("argocd-agent's guide", { timeout: 300_000 }, async () => {
  for (const line of agentGuide) {
    await runs(line);
  }
});

test('make install brings the CRD, again and again', { tags: 'make' }, async () => {
  await runs('kubectl delete crd gitopsclusters.apps.open-cluster-management.io');
  await runs('make install');
  await runs('make install');
  await runs('kubectl wait crd gitopsclusters.apps.open-cluster-management.io --for=condition=Established');
});

test("argocd-pull-integration's guide", async () => {
  const ocmFolder = await mkdtemp(join(folder, 'ocm-'));
  reader = await ReaderFolder.prepare(ocmFolder, { hub: ocmHub.kubeconfig, cluster: onCluster.kubeconfig });
  for (const line of pullGuide) {
    await runs(line);
  }
});
