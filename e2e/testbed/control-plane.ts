import { request } from 'node:http';
import { join } from 'node:path';
import { toolPath } from '../tools/index.ts';
import { Component } from './component.ts';

/** Where a control plane keeps and offers things. All paths are absolute. */
export interface ControlPlaneLayout {
  dir: string;
  /** The API server's port on 127.0.0.1. */
  port: number;
  /** Kubeconfig of the controller manager. */
  kubeconfig: string;
  /** Folder with ca, server, kubelet-client, front-proxy(-ca) certificates and the service account keys. */
  pki: string;
  serviceCidr: string;
  /** Where the API server writes down who asked for what; left out: nowhere. */
  auditLog?: string;
}

/** Where the API server finds its audit policy. */
export const auditPolicy = (layout: { dir: string }) => join(layout.dir, 'audit-policy.json');

/**
 * Every request of a service account outside Kubernetes itself, without bodies; a watch when it begins. And whoever takes
 * rights away.
 */
export const auditPolicyText = JSON.stringify({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', nonResourceURLs: ['*'] },
    { level: 'Metadata', verbs: ['delete'], resources: [{ group: 'rbac.authorization.k8s.io' }] },
    { level: 'None', userGroups: ['system:serviceaccounts:kube-system'] },
    { level: 'Metadata', userGroups: ['system:serviceaccounts'] },
    { level: 'None' },
  ],
});

/** The issuer of service account tokens, as in clusters made by kubeadm. */
export const serviceAccountIssuer = 'https://kubernetes.default.svc.cluster.local';

/** etcd on a Unix socket: only this user reaches it, and it needs no port. */
export async function etcd(layout: ControlPlaneLayout, signal?: AbortSignal): Promise<Component> {
  const socket = etcdSocket(layout);
  // One member never calls its peers, but etcd wants to be told of addresses that look like some.
  const nowhere = 'http://127.0.0.1:1';
  return new Component({
    name: 'etcd',
    command: await toolPath('etcd', { ...(signal && { signal }) }),
    args: [
      `--data-dir=${join(layout.dir, 'etcd')}`,
      `--listen-client-urls=unix://${socket}`,
      `--advertise-client-urls=${nowhere}`,
      `--listen-peer-urls=unix://${join(layout.dir, 'peer.sock')}`,
      `--initial-advertise-peer-urls=${nowhere}`,
      `--initial-cluster=default=${nowhere}`,
      '--unsafe-no-fsync',
      // Alone, it need not wait for others before it leads.
      '--heartbeat-interval=20',
      '--election-timeout=200',
      '--log-level=warn',
    ],
    logFile: join(layout.dir, 'etcd.log'),
    isReady: async (signal) =>
      JSON.parse(await callEtcd(socket, 'GET', '/health', undefined, signal)).health === 'true',
  });
}

/** The path of etcd's socket. */
export const etcdSocket = (layout: { dir: string }) => join(layout.dir, 'etcd.sock');

/** The API server with RBAC, service accounts, the default admission plugins and a kubelet client certificate. */
export async function apiServer(
  layout: ControlPlaneLayout,
  isReady: (signal: AbortSignal) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<Component> {
  const pki = (file: string) => join(layout.pki, file);
  return new Component({
    name: 'kube-apiserver',
    command: await toolPath('kube-apiserver', { ...(signal && { signal }) }),
    args: [
      `--etcd-servers=unix://${etcdSocket(layout)}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      // The endpoints of the Service `kubernetes` cannot be a loopback address.
      '--endpoint-reconciler-type=none',
      `--secure-port=${layout.port}`,
      `--tls-cert-file=${pki('server.crt')}`,
      `--tls-private-key-file=${pki('server.key')}`,
      `--client-ca-file=${pki('ca.crt')}`,
      '--authorization-mode=Node,RBAC',
      // The second one is on in OpenShift: who names an owner needs rights on it.
      '--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement',
      '--enable-bootstrap-token-auth=true',
      '--allow-privileged=true',
      `--service-cluster-ip-range=${layout.serviceCidr}`,
      `--service-account-issuer=${serviceAccountIssuer}`,
      `--service-account-key-file=${pki('service-account.pub')}`,
      `--service-account-signing-key-file=${pki('service-account.key')}`,
      `--kubelet-certificate-authority=${pki('ca.crt')}`,
      `--kubelet-client-certificate=${pki('kubelet-client.crt')}`,
      `--kubelet-client-key=${pki('kubelet-client.key')}`,
      '--kubelet-preferred-address-types=InternalIP',
      `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
      '--requestheader-allowed-names=front-proxy-client',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-username-headers=X-Remote-User',
      `--proxy-client-cert-file=${pki('front-proxy-client.crt')}`,
      `--proxy-client-key-file=${pki('front-proxy-client.key')}`,
      '--profiling=false',
      ...(layout.auditLog ? [`--audit-policy-file=${auditPolicy(layout)}`, `--audit-log-path=${layout.auditLog}`] : []),
    ],
    // A fourth less CPU for 100 MB more.
    env: { ...process.env, GOGC: '400', GOMEMLIMIT: '900MiB' },
    logFile: join(layout.dir, 'kube-apiserver.log'),
    isReady,
  });
}

/** The controller manager with all controllers that run by default, signing CSRs with the cluster's authority. */
export async function controllerManager(
  layout: ControlPlaneLayout,
  isReady: (signal: AbortSignal) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<Component> {
  const pki = (file: string) => join(layout.pki, file);
  return new Component({
    name: 'kube-controller-manager',
    command: await toolPath('kube-controller-manager', { ...(signal && { signal }) }),
    args: [
      `--kubeconfig=${layout.kubeconfig}`,
      '--leader-elect=false',
      '--secure-port=0',
      `--root-ca-file=${pki('ca.crt')}`,
      `--service-account-private-key-file=${pki('service-account.key')}`,
      `--cluster-signing-cert-file=${pki('ca.crt')}`,
      `--cluster-signing-key-file=${pki('ca.key')}`,
      '--kube-api-qps=500',
      '--kube-api-burst=1000',
      '--node-monitor-period=1s',
      // A node that a busy machine keeps from renewing its lease is none that has gone.
      '--node-monitor-grace-period=300s',
      '--namespace-sync-period=30s',
      '--resource-quota-sync-period=30s',
      '--profiling=false',
    ],
    logFile: join(layout.dir, 'kube-controller-manager.log'),
    isReady,
  });
}

/** Calls etcd's JSON gateway and returns the answer's body. */
export function callEtcd(
  socketPath: string,
  method: 'GET' | 'POST',
  path: string,
  body: object | undefined,
  signal?: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // Without an agent: a connection that was idle may be closed in the moment in which it is used again.
    const call = request({ socketPath, method, path, agent: false, ...(signal && { signal }) }, async (response) => {
      try {
        const text = (await response.toArray()).join('');
        if (response.statusCode === 200) {
          resolve(text);
        } else {
          reject(new Error(`etcd answered ${response.statusCode} to ${path}: ${text}`));
        }
      } catch (error) {
        reject(error);
      }
    });
    call.once('error', reject);
    call.end(body && JSON.stringify(body));
  });
}
