export { parseTraceparent, type SpanContext, traceparentOf } from './context.ts';
export { type ExporterOptions, SpanExporter } from './exporter.ts';
export type { AttributeValue, FinishedSpan } from './otlp.ts';
export { startTracing, type Tracing } from './start.ts';
export { type Span, Tracer } from './tracer.ts';
