import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { type KubeClient, secrets } from '../../lib/kube/index.ts';
import { hubEndpoint, type RunningFleet } from '../fleet/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { eventData } from './event-stream.ts';

/** Where an Argo CD server listens. */
export interface ArgoCdAddress {
  readonly host: string;
  readonly port: number;
}

/** Argo CD's API server refused. */
export class ArgoCdError extends Error {
  override readonly name = 'ArgoCdError';
  readonly status: number;

  constructor(what: string, status: number, message: string) {
    super(`${what}: ${status} ${message}`);
    this.status = status;
  }
}

/** Waits until the API server of the hub's Argo CD is ready, and tells where this machine reaches its pod. */
export async function argoCdAddress(fleet: Pick<RunningFleet, 'hub' | 'hubNode'>): Promise<ArgoCdAddress> {
  return await hubEndpoint(fleet, { namespace: 'argocd', name: 'argocd-server' }, 8080);
}

/** The administrator's first password, as Argo CD made it. */
export async function adminPassword(client: KubeClient): Promise<string> {
  const key = { namespace: 'argocd', name: 'argocd-initial-admin-secret' };
  const secret = await waitForObject(client, secrets, key, (found) => found?.data?.password !== undefined);
  return Buffer.from(secret?.data?.password ?? '', 'base64').toString();
}

/** Argo CD's API as its UI uses it, for one user. */
export class ArgoCdApi {
  readonly address: ArgoCdAddress;
  readonly token: string;
  // Its certificate is one that it made for itself.
  readonly #agent = new Agent({ rejectUnauthorized: false, keepAlive: true });

  constructor(address: ArgoCdAddress, token: string) {
    this.address = address;
    this.token = token;
  }

  /** Logs a local user in. */
  static async login(address: ArgoCdAddress, username: string, password: string): Promise<ArgoCdApi> {
    const nobody = new ArgoCdApi(address, '');
    const { token } = await nobody.call<{ token: string }>('POST', '/api/v1/session', { username, password });
    nobody.close();
    return new ArgoCdApi(address, token);
  }

  /** @throws ArgoCdError when the answer is no success */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#send(method, path, body);
    const text = await textOf(response);
    if (response.statusCode === 200) {
      return JSON.parse(text) as T;
    }
    throw new ArgoCdError(`${method} ${path}`, response.statusCode ?? 0, text);
  }

  get<T>(path: string): Promise<T> {
    return this.call('GET', path);
  }

  /** Whether a browser gets its UI. One that was built of Argo CD's Go modules has none: it has no file to show. */
  async hasUi(): Promise<boolean> {
    const response = await this.#send('GET', '/', undefined, { accept: 'text/html' });
    await textOf(response);
    return response.statusCode === 200 && /^text\/html\b/.test(response.headers['content-type'] ?? '');
  }

  /** The messages of an endpoint that goes on; ends with the signal. */
  async *stream<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
    const response = await this.#send('GET', path, undefined, { accept: 'text/event-stream' }, signal);
    if (response.statusCode !== 200) {
      throw new ArgoCdError(path, response.statusCode ?? 0, await textOf(response));
    }
    try {
      for await (const data of eventData(response.setEncoding('utf8'))) {
        const message = JSON.parse(data) as { result?: T; error?: { message: string } };
        if (message.error) {
          throw new ArgoCdError(path, 200, message.error.message);
        }
        if (message.result !== undefined) {
          yield message.result;
        }
      }
    } catch (error) {
      if (!signal.aborted) {
        throw error;
      }
    }
  }

  /** Closes its connections. */
  close(): void {
    this.#agent.destroy();
  }

  #send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const text = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(
      {
        ...this.address,
        agent: this.#agent,
        method,
        path,
        ...(signal && { signal }),
        headers: {
          ...(this.token === '' ? {} : { authorization: `Bearer ${this.token}` }),
          // It takes no change, with a body or without, from a browser's form.
          ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      resolve,
    );
    sent.on('error', reject);
    sent.end(text);
    return promise;
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk;
  }
  return text;
}
