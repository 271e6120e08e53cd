import { isNotFound, type KubeClient } from '../../lib/kube/index.ts';
import { VolumeError } from './errors.ts';
import type { KubeletPod } from './types.ts';

interface Held {
  token: string;
  renewAt: number;
}

/** The service account tokens of one pod, bound to it, asked for as they are needed and renewed at 80 % of their life. */
export class ServiceAccountTokens {
  readonly #client: KubeClient;
  readonly #held = new Map<string, Held>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** When the first token must be renewed, in milliseconds since the epoch; Infinity without tokens. */
  get renewAt(): number {
    return Math.min(...[...this.#held.values()].map((held) => held.renewAt));
  }

  /** A token that is fresh enough. */
  async get(
    pod: KubeletPod,
    request: { audience?: string; expirationSeconds?: number },
    signal: AbortSignal,
  ): Promise<string> {
    const key = request.audience ?? '';
    const held = this.#held.get(key);
    if (held && held.renewAt > Date.now()) {
      return held.token;
    }
    const account = pod.spec.serviceAccountName ?? 'default';
    try {
      const response = await this.#client.request(
        `/api/v1/namespaces/${pod.metadata.namespace}/serviceaccounts/${account}/token`,
        {
          method: 'POST',
          signal,
          body: {
            apiVersion: 'authentication.k8s.io/v1',
            kind: 'TokenRequest',
            spec: {
              audiences: request.audience ? [request.audience] : [],
              expirationSeconds: request.expirationSeconds ?? 3600,
              boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid },
            },
          },
        },
      );
      const answer = JSON.parse(await response.body.text()) as {
        status: { token: string; expirationTimestamp: string };
      };
      const life = Date.parse(answer.status.expirationTimestamp) - Date.now();
      this.#held.set(key, { token: answer.status.token, renewAt: Date.now() + life * 0.8 });
      return answer.status.token;
    } catch (error) {
      if (isNotFound(error)) {
        throw new VolumeError(`failed to fetch token: serviceaccounts "${account}" not found`);
      }
      throw error;
    }
  }
}
