import type { Logger } from '../base/index.ts';
import { FatalError } from '../ops/index.ts';
import { SpanExporter } from './exporter.ts';
import { Tracer } from './tracer.ts';

/** Tracing that is on. */
export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what is left. */
  close(): Promise<void>;
}

/**
 * What `--otlp-address` and `--otlp-insecure` ask for; undefined without an address. `service` is the program's
 * `service.name`: `principal`, or `agent-<mode>`.
 * @throws FatalError for an address that is none
 */
export function startTracing(
  flags: { readonly 'otlp-address': string; readonly 'otlp-insecure': boolean },
  service: string,
  logger: Logger,
): Tracing | undefined {
  const address = flags['otlp-address'];
  if (address === '') {
    return undefined;
  }
  if (!/^(\[[^\]]+\]|[^:/\s]+):\d{1,5}$/.test(address)) {
    throw new FatalError(`--otlp-address ${JSON.stringify(address)} is no address of the form host:port`);
  }
  const exporter = new SpanExporter({ address, insecure: flags['otlp-insecure'], service, logger });
  const [component = service] = service.split('-', 1);
  const tracer = new Tracer({
    finished: (span) => exporter.add(span),
    common: { 'argocd.component.type': component },
  });
  logger.info({ collector: address, service }, 'traces are sent');
  return { tracer, close: () => exporter.close() };
}
