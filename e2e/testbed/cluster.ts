import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { KubeClient, serviceAccounts } from '../../lib/kube/index.ts';
import type { Component } from './component.ts';
import {
  apiServer,
  auditPolicy,
  auditPolicyText,
  callEtcd,
  controllerManager,
  etcd,
  etcdSocket,
} from './control-plane.ts';
import { applyCrds } from './crds.ts';
import { removeFolder, workFolder } from './folders.ts';
import { type Credential, kubeconfigText } from './kubeconfig.ts';
import { Authority, type CertificateSubject, type ClusterKeyPair, serviceAccountKeys } from './pki.ts';
import { freePort, releasePort } from './ports.ts';

/** How to make a cluster. */
export interface ClusterOptions {
  /** Default: `cluster`. */
  name?: string;
  /** Where its data, certificates and logs go. Default: a new temporary folder, removed by `stop`. */
  dir?: string;
  /** Record who asked the API server for what: see {@link Cluster.auditLog}. Default: no. */
  audit?: boolean;
  signal?: AbortSignal;
}

/** Whom a kubeconfig speaks as: a service account (by token), or a user with groups (by client certificate). */
export type KubeconfigIdentity =
  | { serviceAccount: { namespace: string; name: string } }
  | { user: string; groups?: readonly string[] };

/** A cluster for whoever does not run its processes. */
export interface SharedCluster {
  readonly name: string;
  /** A folder that goes when the cluster stops. */
  readonly dir: string;
  /** Path of the kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** https URL of the API server. */
  readonly server: string;
  /** The cluster's authority, PEM: of the API server, of client certificates, of kubelets. */
  readonly ca: string;
  /** The range of the Services' cluster IPs. */
  readonly serviceCidr: string;
  /** As cluster administrator. */
  readonly client: KubeClient;
  /** Writes a kubeconfig for someone and returns its path. A service account must exist; its token lives for a day. */
  kubeconfigFor(identity: KubeconfigIdentity): Promise<string>;
  /** A certificate of the cluster's authority, for a client, a kubelet or another server. */
  issueCertificate(subject: CertificateSubject): Promise<ClusterKeyPair>;
  /** Applies CRDs from YAML files and folders of them, and waits until they are served. */
  applyCrds(paths: string | readonly string[], signal?: AbortSignal): Promise<void>;
  /** Ends the use of the cluster. */
  stop(): Promise<void>;
}

/**
 * A Kubernetes control plane on this machine: etcd, an API server with RBAC, service accounts and admission, and a
 * controller manager. It has no scheduler and no node; a process node brings both.
 */
export interface Cluster extends SharedCluster {
  /** Folder with its data, certificates and logs. */
  readonly dir: string;
  /** Path of the API server's audit log, one event per line, if the cluster was started with `audit`. */
  readonly auditLog: string;
  readonly etcd: Component;
  readonly apiServer: Component;
  readonly controllerManager: Component;
  /** Its authority with the private key, for {@link openCluster}. */
  readonly authority: ClusterKeyPair;
  /**
   * Makes etcd forget all history. The API server answers 410 Gone to lists and watches of older resource versions once
   * it has forgotten them too: at once after its restart.
   */
  compactHistory(): Promise<void>;
  /** Ends everything and, if the folder is a temporary one, removes it. */
  stop(): Promise<void>;
}

const serviceCidr = '10.96.0.0/16';

/**
 * Starts a cluster and resolves when it can be used: the API server is ready and the controllers have made the default
 * service account. The tools are built on first use.
 * @throws ToolError when a tool cannot be built; Error with the end of the log when a process ends or hangs.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { name = 'cluster', signal } = options;
  const dir = options.dir ?? (await workFolder(name));
  const port = await freePort();
  const started: Component[] = [];
  const stop = async () => {
    await Promise.all(started.map((component) => component.kill()));
    releasePort(port);
    if (options.dir === undefined) {
      await removeFolder(dir);
    }
  };
  try {
    const pki = join(dir, 'pki');
    const auditLog = join(dir, 'audit.log');
    const layout = {
      dir,
      pki,
      port,
      kubeconfig: join(dir, 'controller-manager.kubeconfig'),
      serviceCidr,
      ...(options.audit && { auditLog }),
    };
    const server = `https://127.0.0.1:${port}`;
    await mkdir(pki, { recursive: true });

    const store = await etcd(layout, signal);
    started.push(store);
    await store.start();
    const authority = await writePki(pki);
    const writeKubeconfig = async (file: string, credential: Credential) => {
      const path = join(dir, file);
      await writeFile(path, kubeconfigText({ name, server, ca: authority.certificate }, credential), { mode: 0o600 });
      return path;
    };
    const admin = await authority.issue({ commonName: 'admin', organizations: ['system:masters'] });
    const manager = { commonName: 'system:kube-controller-manager', organizations: ['system:masters'] };
    await writeKubeconfig('controller-manager.kubeconfig', await authority.issue(manager));
    const kubeconfig = await writeKubeconfig('admin.kubeconfig', admin);
    await store.ready(signal);
    if (options.audit) {
      await writeFile(auditPolicy(layout), auditPolicyText);
    }

    const front = await apiServer(
      layout,
      (until) => answersOk(`${server}/readyz`, authority.certificate, admin, until),
      signal,
    );
    started.push(front);
    await front.start();
    await front.ready(signal);

    const client = KubeClient.fromKubeconfig(kubeconfig);
    const hasDefaultAccount = async (until: AbortSignal) =>
      (await client.get(serviceAccounts, { namespace: 'default', name: 'default' }, until)) !== undefined;
    const controllers = await controllerManager(layout, hasDefaultAccount, signal);
    started.push(controllers);
    await controllers.start();
    await controllers.ready(signal);

    return {
      ...accessTo({ name, dir, kubeconfig, server }, authority, client),
      auditLog,
      etcd: store,
      apiServer: front,
      controllerManager: controllers,
      authority,
      compactHistory: () => compactHistory(etcdSocket(layout)),
      async stop() {
        await client.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What a process needs to use a cluster that another process runs. */
export interface ClusterAddress {
  name: string;
  server: string;
  /** Path of an administrator's kubeconfig. */
  kubeconfig: string;
  authority: ClusterKeyPair;
}

/** Uses a cluster that another process runs. `dir` gets what is written here. */
export async function openCluster(
  { name, server, kubeconfig, authority }: ClusterAddress,
  dir: string,
): Promise<Omit<SharedCluster, 'stop'>> {
  const place = { name, dir, kubeconfig, server };
  return accessTo(place, await Authority.load(authority), KubeClient.fromKubeconfig(kubeconfig));
}

function accessTo(
  place: { name: string; dir: string; kubeconfig: string; server: string },
  authority: Authority,
  client: KubeClient,
): Omit<SharedCluster, 'stop'> {
  const { name, dir, server } = place;
  const ca = authority.certificate;
  let kubeconfigs = 0;
  return {
    ...place,
    ca,
    serviceCidr,
    client,
    async kubeconfigFor(identity) {
      kubeconfigs += 1;
      const path = join(dir, `${kubeconfigs}.kubeconfig`);
      const credential = await credentialOf(identity, client, authority);
      await writeFile(path, kubeconfigText({ name, server, ca }, credential), { mode: 0o600 });
      return path;
    },
    issueCertificate: (subject) => authority.issue(subject),
    applyCrds: (paths, signal) => applyCrds(client, typeof paths === 'string' ? [paths] : paths, signal),
  };
}

async function writePki(folder: string): Promise<Authority> {
  const write = (file: string, text: string) => writeFile(join(folder, file), text, { mode: 0o600 });
  const writePair = (name: string, pair: ClusterKeyPair) =>
    Promise.all([write(`${name}.crt`, pair.certificate), write(`${name}.key`, pair.key)]);

  const [authority, frontProxy] = await Promise.all([Authority.create('kubernetes'), Authority.create('front-proxy')]);
  const [server, kubeletClient, proxyClient] = await Promise.all([
    authority.issue({
      commonName: 'kube-apiserver',
      hosts: [
        'localhost',
        '127.0.0.1',
        // The Service `kubernetes`, the first address of the range.
        '10.96.0.1',
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        'kubernetes.default.svc.cluster.local',
      ],
    }),
    authority.issue({ commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] }),
    frontProxy.issue({ commonName: 'front-proxy-client' }),
  ]);
  const accounts = serviceAccountKeys();
  await Promise.all([
    writePair('ca', authority),
    writePair('server', server),
    writePair('kubelet-client', kubeletClient),
    write('front-proxy-ca.crt', frontProxy.certificate),
    writePair('front-proxy-client', proxyClient),
    write('service-account.pub', accounts.publicKey),
    write('service-account.key', accounts.privateKey),
  ]);
  return authority;
}

async function credentialOf(
  identity: KubeconfigIdentity,
  client: KubeClient,
  authority: Authority,
): Promise<Credential> {
  if ('user' in identity) {
    return authority.issue({ commonName: identity.user, organizations: identity.groups ?? [] });
  }
  const { namespace, name } = identity.serviceAccount;
  const response = await client.request(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
    method: 'POST',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 24 * 3600 } },
  });
  return { token: (JSON.parse(await response.body.text()) as { status: { token: string } }).status.token };
}

async function compactHistory(socket: string): Promise<void> {
  // Any read tells the revision that etcd is at.
  const key = Buffer.from('/').toString('base64');
  const answer = JSON.parse(await callEtcd(socket, 'POST', '/v3/kv/range', { key }));
  await callEtcd(socket, 'POST', '/v3/kv/compaction', { revision: answer.header.revision, physical: true });
}

function answersOk(url: string, ca: string, client: ClusterKeyPair, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const call = request(url, { ca, cert: client.certificate, key: client.key, agent: false, signal }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.once('error', reject);
    call.end();
  });
}
