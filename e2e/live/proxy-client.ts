import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { KeyCertificate } from '../../lib/pki/index.ts';

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** A client of the resource proxy, as Argo CD is one: with a client certificate, over HTTP/1.1. */
export class ProxyClient {
  readonly port: number;
  readonly #at: { readonly host: string; readonly servername?: string };
  readonly #tls: { readonly ca: string; readonly cert: string; readonly key: string };

  /** @param at where it listens, and the name that its certificate must have. Default: this machine. */
  constructor(
    port: number,
    authority: KeyCertificate,
    client: KeyCertificate,
    at: { readonly host: string; readonly servername?: string } = { host: '127.0.0.1' },
  ) {
    this.port = port;
    this.#at = at;
    this.#tls = { ca: authority.certificate, cert: client.certificate, key: client.key };
  }

  /** Sends a request; resolves with the head of the answer, whose body the caller reads. */
  open(
    method: string,
    path: string,
    options: { body?: string | Buffer; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<IncomingMessage> {
    const { body, headers = {}, signal } = options;
    return new Promise((resolve, reject) => {
      const sent = httpsRequest(
        {
          ...this.#at,
          port: this.port,
          ...this.#tls,
          agent: false,
          method,
          path,
          headers: { ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }), ...headers },
          ...(signal === undefined ? {} : { signal }),
        },
        resolve,
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** Sends a request and reads the answer. */
  async send(method: string, path: string, options: Parameters<ProxyClient['open']>[2] = {}): Promise<Answer> {
    const response = await this.open(method, path, options);
    const parts: Buffer[] = [];
    for await (const part of response as AsyncIterable<Buffer>) {
      parts.push(part);
    }
    return {
      status: response.statusCode ?? 0,
      contentType: response.headers['content-type'] ?? '',
      text: Buffer.concat(parts).toString('utf8'),
    };
  }
}
