import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import path from 'node:path';
import { KubeConfig, type User } from '@kubernetes/client-node';
import { parse } from 'yaml';

/** What a TLS connection to the API server needs. */
export interface TlsMaterial {
  ca?: string | Buffer | undefined;
  cert?: string | Buffer | undefined;
  key?: string | Buffer | undefined;
  passphrase?: string | undefined;
  servername?: string | undefined;
  rejectUnauthorized?: boolean | undefined;
}

/** Who we are towards the API server, valid now. */
export interface Identity {
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
  /** Changes exactly when `tls` does. */
  readonly tlsFingerprint: string;
}

const refreshAfterMs = 10_000;
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Credentials of one kubeconfig context. Files (certificates, tokens) are read again every ten seconds and exec plugins
 * asked when their answer expires, so that rotation needs no restart.
 */
export class Credentials {
  readonly server: string;
  readonly proxyUrl: string | undefined;
  /** The namespace of the context, or of the pod's service account. */
  readonly namespace: string | undefined;
  readonly #load: () => KubeConfig;
  #config: KubeConfig;
  #identity: Identity | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<Identity> | undefined;

  /** `load` reads the configuration anew each time it is called; `server` overrides the address in it. */
  constructor(load: () => KubeConfig, server?: string) {
    this.#load = load;
    this.#config = load();
    const cluster = this.#config.getCurrentCluster();
    if (!cluster) {
      const context = this.#config.getCurrentContext();
      throw new Error(`kubeconfig: the current context ${JSON.stringify(context ?? '')} names no cluster`);
    }
    this.server = (server ?? cluster.server).replace(/\/+$/, '');
    this.proxyUrl = cluster.proxyUrl;
    this.namespace = this.#config.getContextObject(this.#config.getCurrentContext())?.namespace;
  }

  /** The identity to use for a request that starts now. */
  async current(): Promise<Identity> {
    if (this.#identity && performance.now() - this.#readAt < refreshAfterMs) {
      return this.#identity;
    }
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Forgets everything cached; for when the server answered 401. */
  invalidate(): void {
    this.#config = this.#load();
    this.#identity = undefined;
  }

  async #read(): Promise<Identity> {
    const options: RequestOptions = { headers: {} };
    // A bearer token or certificate must not travel over an unencrypted connection.
    if (this.server.startsWith('https:')) {
      await this.#config.applyToHTTPSOptions(options);
    }
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (value !== undefined) {
        headers[name.toLowerCase()] = String(value).trim();
      }
    }
    if (options.auth) {
      headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    }
    const tls: TlsMaterial = {};
    if (options.ca) {
      tls.ca = options.ca as Buffer;
    }
    if (options.cert) {
      tls.cert = options.cert as Buffer;
    }
    if (options.key) {
      tls.key = options.key as Buffer;
    }
    if (options.passphrase) {
      tls.passphrase = options.passphrase;
    }
    if (options.servername) {
      tls.servername = options.servername;
    }
    if (options.rejectUnauthorized !== undefined) {
      tls.rejectUnauthorized = options.rejectUnauthorized;
    }
    this.#identity = { headers, tls, tlsFingerprint: fingerprint(tls) };
    this.#readAt = performance.now();
    return this.#identity;
  }
}

function fingerprint(tls: TlsMaterial): string {
  const hash = createHash('sha256');
  for (const part of [tls.ca, tls.cert, tls.key, tls.passphrase, tls.servername, tls.rejectUnauthorized]) {
    const bytes = part === undefined ? '' : typeof part === 'boolean' ? String(part) : part;
    hash.update(`${Buffer.byteLength(bytes)}:`).update(bytes);
  }
  return hash.digest('base64');
}

/** Reads a kubeconfig file; `context` overrides its current context. Throws when either does not exist. */
export function kubeConfigFromFile(file: string, context?: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(file);
  addTokenFiles(config, file);
  if (context !== undefined) {
    if (!config.getContextObject(context)) {
      throw new Error(`kubeconfig ${file}: there is no context "${context}"`);
    }
    config.setCurrentContext(context);
  }
  return config;
}

/** The configuration that a pod gets from its service account. Throws outside of a pod. */
export function kubeConfigInCluster(): KubeConfig {
  if (!isInCluster()) {
    throw new Error(
      'not running in a cluster: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT or the service account token is missing',
    );
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  return config;
}

/** The search order of all our programs: the given file, KUBECONFIG, the pod's service account, ~/.kube/config. */
export function kubeConfigFromEnvironment(options: { kubeconfig?: string; context?: string } = {}): () => KubeConfig {
  const { kubeconfig, context } = options;
  if (kubeconfig) {
    return () => kubeConfigFromFile(kubeconfig, context);
  }
  const files = (process.env.KUBECONFIG ?? '').split(path.delimiter).filter((file) => file !== '');
  if (files.length > 0) {
    return () => mergedKubeConfig(files, context);
  }
  if (isInCluster()) {
    return kubeConfigInCluster;
  }
  const home = path.join(homedir(), '.kube', 'config');
  if (existsSync(home)) {
    return () => kubeConfigFromFile(home, context);
  }
  throw new Error('no Kubernetes configuration: give --kubeconfig or KUBECONFIG, or run in a cluster');
}

function isInCluster(): boolean {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  return Boolean(host && port && existsSync(path.join(serviceAccountFolder, 'token')));
}

/** Merges files as kubectl does: the first one that defines a name wins. */
function mergedKubeConfig(files: string[], context?: string): KubeConfig {
  const merged = new KubeConfig();
  merged.loadFromOptions({ clusters: [], users: [], contexts: [], currentContext: '' });
  for (const file of files) {
    if (!existsSync(file) && files.length > 1) {
      continue;
    }
    const config = kubeConfigFromFile(file);
    const isNew = (known: { name: string }[]) => (entry: { name: string }) => !known.some((k) => k.name === entry.name);
    merged.clusters = [...merged.clusters, ...config.clusters.filter(isNew(merged.clusters))];
    merged.users = [...merged.users, ...config.users.filter(isNew(merged.users))];
    merged.contexts = [...merged.contexts, ...config.contexts.filter(isNew(merged.contexts))];
    merged.currentContext ||= config.currentContext;
  }
  if (context !== undefined) {
    if (!merged.getContextObject(context)) {
      throw new Error(`kubeconfig ${files.join(path.delimiter)}: there is no context "${context}"`);
    }
    merged.setCurrentContext(context);
  }
  return merged;
}

/** client-node ignores `tokenFile` of kubeconfig users; kubectl and client-go follow it, so we do. */
function addTokenFiles(config: KubeConfig, file: string): void {
  const document = parse(readFileSync(file, 'utf8')) as { users?: { name: string; user?: { tokenFile?: string } }[] };
  for (const { name, user } of document?.users ?? []) {
    if (!user?.tokenFile) {
      continue;
    }
    const tokenFile = path.resolve(path.dirname(file), user.tokenFile);
    config.users = config.users.map(
      (entry): User =>
        entry.name === name ? { ...entry, authProvider: { name: 'tokenFile', config: { tokenFile } } } : entry,
    );
  }
}
