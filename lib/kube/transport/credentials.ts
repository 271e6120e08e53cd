import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { trusting } from '../../base/index.ts';
import type { KubeContext, KubeconfigUser } from './kubeconfig.ts';

/** The TLS options of a connection to the API server. */
export interface TlsMaterial {
  ca?: string | Buffer | undefined;
  allowPartialTrustChain?: true | undefined;
  cert?: string | Buffer | undefined;
  key?: string | Buffer | undefined;
  servername?: string | undefined;
  rejectUnauthorized?: boolean | undefined;
}

/** The client's identity towards the API server, valid now. */
export interface Identity {
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
  /** Changes exactly when `tls` does. */
  readonly tlsFingerprint: string;
}

const refreshAfterMs = 10_000;

/**
 * Credentials of one kubeconfig context. Files (certificates, tokens) are read again every ten seconds and exec plugins
 * are run when their result expires, so that rotation needs no restart.
 */
export class Credentials {
  /** URL of the API server. */
  readonly server: string;
  readonly proxyUrl: string | undefined;
  /** The namespace of the context, or of the pod's service account. */
  readonly namespace: string | undefined;
  readonly #load: () => KubeContext;
  #context: KubeContext;
  #plugin: KubeConfig | undefined;
  #identity: Identity | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<Identity> | undefined;

  /** `load` reads the configuration each time it is called; `server` overrides the address in it. */
  constructor(load: () => KubeContext, server?: string) {
    this.#load = load;
    this.#context = load();
    const { cluster, namespace } = this.#context;
    this.server = (server ?? cluster.server).replace(/\/+$/, '');
    this.proxyUrl = cluster['proxy-url'] || undefined;
    this.namespace = namespace || undefined;
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
    this.#context = this.#load();
    this.#plugin = undefined;
    this.#identity = undefined;
  }

  async #read(): Promise<Identity> {
    // A bearer token or certificate must not travel over an unencrypted connection.
    const isEncrypted = this.server.startsWith('https:');
    const [headers, tls] = isEncrypted ? await Promise.all([this.#headers(), this.#tls()]) : [{}, {}];
    if (isEncrypted && needsPlugin(this.#context.user)) {
      const options = await this.#askPlugin();
      for (const [name, value] of Object.entries(options.headers ?? {})) {
        headers[name.toLowerCase()] = String(value).trim();
      }
      tls.cert = (options.cert as Buffer | undefined) ?? tls.cert;
      tls.key = (options.key as Buffer | undefined) ?? tls.key;
    }
    this.#identity = { headers, tls, tlsFingerprint: fingerprint(tls) };
    this.#readAt = performance.now();
    return this.#identity;
  }

  async #headers(): Promise<Record<string, string>> {
    const { user } = this.#context;
    const headers: Record<string, string> = {};
    // The file wins, as in client-go.
    const token = user.tokenFile ? await readFile(user.tokenFile, 'utf8') : user.token;
    if (token) {
      headers.authorization = `Bearer ${token.trim()}`;
    } else if (user.username) {
      headers.authorization = `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`;
    }
    if (user.as) {
      headers['impersonate-user'] = user.as;
    }
    return headers;
  }

  async #tls(): Promise<TlsMaterial> {
    const { cluster, user } = this.#context;
    const [ca, cert, key] = await Promise.all([
      fileOrData(cluster['certificate-authority'], cluster['certificate-authority-data']),
      fileOrData(user['client-certificate'], user['client-certificate-data']),
      fileOrData(user['client-key'], user['client-key-data']),
    ]);
    return {
      ...trusting(ca),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(cluster['tls-server-name'] && { servername: cluster['tls-server-name'] }),
      ...(cluster['insecure-skip-tls-verify'] && { rejectUnauthorized: false }),
    };
  }

  /**
   * The result of the user's exec plug-in or auth provider: headers, and perhaps a certificate. @kubernetes/client-node
   * runs them. It is loaded only for such users, because it takes 40 MB and doubles the start-up time.
   */
  async #askPlugin(): Promise<RequestOptions> {
    if (this.#plugin === undefined) {
      const { KubeConfig } = await import('@kubernetes/client-node');
      const plugin = new KubeConfig();
      const [name, namespace] = ['context', this.namespace];
      plugin.loadFromString(
        JSON.stringify({
          clusters: [{ name, cluster: { server: this.server } }],
          users: [{ name, user: this.#context.user }],
          contexts: [{ name, context: { cluster: name, user: name, namespace } }],
          'current-context': name,
        }),
      );
      this.#plugin = plugin;
    }
    const options: RequestOptions = { headers: {} };
    await this.#plugin.applyToHTTPSOptions(options);
    return options;
  }
}

function needsPlugin(user: KubeconfigUser): boolean {
  return Boolean(user.exec || user['auth-provider']);
}

async function fileOrData(
  file: string | null | undefined,
  base64: string | null | undefined,
): Promise<Buffer | undefined> {
  if (file) {
    return await readFile(file);
  }
  return base64 ? Buffer.from(base64, 'base64') : undefined;
}

function fingerprint(tls: TlsMaterial): string {
  const hash = createHash('sha256');
  for (const part of [tls.ca, tls.cert, tls.key, tls.servername, tls.rejectUnauthorized]) {
    const bytes = part === undefined ? '' : typeof part === 'boolean' ? String(part) : part;
    hash.update(`${Buffer.byteLength(bytes)}:`).update(bytes);
  }
  return hash.digest('base64');
}
