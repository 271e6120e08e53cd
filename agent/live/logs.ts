import type { Logger } from '../../lib/base/index.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import { BufferSweep, type LogRequest, logRequest } from '../../lib/live/index.ts';
import { dataOf, type WireEvent } from '../../lib/wire/index.ts';
import { BodyWriter, ReaderGoneError } from './body-writer.ts';
import type { ManagedObjects } from './managed/managed-objects.ts';
import { podPath, requireManagedPod } from './managed/managed-pod.ts';
import { statusOf } from './refusal.ts';
import type { RequestContext } from './requests.ts';

/** What {@link Logs} works with. */
export interface LogsOptions {
  /** For live requests alone. */
  readonly client: KubeClient;
  readonly managed: Pick<ManagedObjects, 'verdictOn'>;
  readonly access: 'managed' | 'all';
  readonly logger: Logger;
}

/** The kubelet may be slow to open a log; a followed log may be silent without limit. */
const openTimeoutMs = 30_000;

/**
 * Sends the logs of containers of pods that belong to Applications. Every line begins with its time, asked for or not, as
 * argocd-agent's agents do: the principal can take a log up again where it broke off.
 */
export class Logs {
  readonly #options: LogsOptions;
  readonly #sweep = new BufferSweep();

  constructor(options: LogsOptions) {
    this.#options = options;
  }

  /** Answers one request, over a live stream. */
  async handle(event: WireEvent, context: RequestContext): Promise<void> {
    const request = dataOf(event, logRequest);
    const { signal } = context;
    const writer = await BodyWriter.open(request.uuid, context, this.#sweep);
    try {
      await requireManagedPod(request, this.#options, signal);
      const response = await this.#options.client.request(`${podPath(request, 'log')}?${queryOf(request)}`, {
        headers: { accept: '*/*' },
        signal,
        timeoutMs: request.follow ? 0 : openTimeoutMs,
      });
      for await (const chunk of response.body) {
        await writer.write(chunk);
      }
      writer.end();
    } catch (error) {
      if (signal.aborted || error instanceof ReaderGoneError) {
        return;
      }
      const [code, text] = statusOf(error);
      if (code >= 500) {
        this.#options.logger.warn({ error }, 'a log could not be read');
      }
      writer.end(text);
    }
  }
}

function queryOf(request: LogRequest): string {
  const { container, follow, previous, insecureSkipTLSVerifyBackend, tailLines, sinceSeconds, sinceTime, limitBytes } =
    request;
  const query = new URLSearchParams({ timestamps: 'true' });
  if (container !== '') {
    query.set('container', container);
  }
  for (const [key, value] of Object.entries({ follow, previous, insecureSkipTLSVerifyBackend })) {
    if (value) {
      query.set(key, 'true');
    }
  }
  for (const [key, value] of Object.entries({ tailLines, sinceSeconds, limitBytes })) {
    if (value !== undefined) {
      query.set(key, String(value));
    }
  }
  // The API server refuses both; as in the original a time that is none does not count.
  if (sinceTime !== '' && sinceSeconds === undefined && !Number.isNaN(Date.parse(sinceTime))) {
    query.set('sinceTime', sinceTime);
  }
  return query.toString();
}
