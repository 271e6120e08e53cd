import { onAbort } from '../base/index.ts';
import type { KubeClient, ObservedRequest } from '../kube/index.ts';
import {
  createRegistry,
  type HttpEndpoint,
  kubeRequestMetrics,
  type ProgramLogger,
  serveHealth,
  serveMetrics,
  serveProfiles,
  versionInfo,
} from '../ops/index.ts';
import { startTracing, type Tracing } from '../tracing/index.ts';
import { kubeClient, kubeRate } from './kube-access.ts';
import { kubeRequestSpans } from './request-spans.ts';

/** The flags that {@link startProgram} reads. */
export interface ProgramFlags {
  readonly namespace: string;
  readonly kubeconfig: string;
  readonly kubecontext: string;
  readonly 'healthz-port': number;
  readonly 'metrics-port': number;
  readonly 'pprof-port': number;
  readonly 'otlp-address': string;
  readonly 'otlp-insecure': boolean;
}

/** What principal and agent have from their start to their end. */
export interface RunningProgram {
  readonly client: KubeClient;
  /** Another client of the same API server; `beforeWrite` may throw to keep a write from being sent. */
  clientWith(beforeWrite: () => void): KubeClient;
  readonly registry: ReturnType<typeof createRegistry>;
  readonly tracing: Tracing | undefined;
  /** Aborts when the program has to stop: it was asked to, or a part of it failed. */
  readonly signal: AbortSignal;
  /** Stops the program; {@link close} throws the error. */
  failed(error: unknown): void;
  /** Sets what the health check reports; undefined when the program is healthy. `isReady`: `/readyz` is well all the same. */
  health(
    problem: string | undefined,
    more?: { readonly headers: Readonly<Record<string, string>>; readonly isReady: boolean },
  ): void;
  /** Serves the registry on `--metrics-port`, unless it is 0. @throws FatalError when the port cannot be used */
  serveMetrics(): Promise<void>;
  /** Resolves when the program has to stop. */
  stopped(): Promise<void>;
  /** Ends what the program itself has started. @throws the error given to {@link failed} */
  close(): Promise<void>;
}

/**
 * Starts what both programs have: the client of the API server, metrics, tracing, the health check and profiling.
 * @param options.service the program's name in traces
 * @param options.about fields of the log line that says that the program starts
 * @throws FatalError when a port cannot be used or the API server is not configured
 */
export async function startProgram(options: {
  name: string;
  service: string;
  flags: ProgramFlags;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  about: (client: KubeClient) => object;
  logger: ProgramLogger;
}): Promise<RunningProgram> {
  const { name, flags, logger } = options;
  const registry = createRegistry();
  const tracing = startTracing(flags, options.service, logger);
  const counted = kubeRequestMetrics(registry, () => new URL(client.server).host);
  const traced = tracing && kubeRequestSpans(tracing.tracer);
  const access = {
    rate: kubeRate(options.env, (message) => logger.warn(message)),
    observe: (request: ObservedRequest) => {
      counted(request);
      traced?.(request);
    },
  };
  const client: KubeClient = kubeClient(flags, access);
  logger.info(
    { version: versionInfo().version, namespace: flags.namespace, ...options.about(client) },
    `${name} starts`,
  );
  const failure = new AbortController();
  const signal = AbortSignal.any([options.signal, failure.signal]);
  let problem: string | undefined = 'waiting for the API server';
  let more: Parameters<RunningProgram['health']>[1];
  const healthz = () => ({ ok: problem === undefined, text: problem ?? '', ...(more && { headers: more.headers }) });
  const endpoints: HttpEndpoint[] = [
    await serveHealth({
      port: flags['healthz-port'],
      logger,
      healthz,
      readyz: () => (more?.isReady ? { ok: true } : healthz()),
    }),
  ];
  if (flags['pprof-port'] > 0) {
    endpoints.push(await serveProfiles({ port: flags['pprof-port'], logger }));
  }
  return {
    client,
    clientWith: (beforeWrite) => kubeClient(flags, { ...access, beforeWrite }),
    registry,
    tracing,
    signal,
    failed: (error) => failure.abort(error),
    health(next, nextMore) {
      problem = next;
      more = nextMore;
    },
    async serveMetrics() {
      if (flags['metrics-port'] > 0) {
        endpoints.push(await serveMetrics({ port: flags['metrics-port'], registry, logger }));
      }
    },
    stopped: () => new Promise((resolve) => void onAbort(signal, resolve)),
    async close() {
      await Promise.all([tracing?.close(), ...endpoints.map((endpoint) => endpoint.close())]);
      if (failure.signal.aborted) {
        throw failure.signal.reason;
      }
    },
  };
}
