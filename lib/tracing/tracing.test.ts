import { afterEach, expect, test } from 'vitest';
import { type Collector, startCollector } from '../../e2e/pair/collector.ts';
import { readExport } from '../../e2e/pair/otlp.ts';
import { until } from '../base/testing.ts';
import { type FinishedSpan, parseTraceparent, SpanExporter, Tracer, traceparentOf } from './index.ts';
import { encodeExport } from './otlp.ts';

const clean: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) {
    await step();
  }
});

async function collect(port?: number): Promise<Collector> {
  const collector = await startCollector(port);
  clean.push(() => collector.stop());
  return collector;
}

function start(address: string) {
  const lines: object[] = [];
  const log = (fields: object) => void lines.push(fields);
  const exporter = new SpanExporter({
    address,
    insecure: true,
    service: 'principal',
    logger: { info: log, warn: log },
  });
  clean.push(() => exporter.close());
  return { exporter, lines, tracer: new Tracer({ finished: (span) => exporter.add(span), common: { side: 'hub' } }) };
}

test('the context of a span goes to a peer and back', () => {
  const { context } = new Tracer({ finished: () => undefined }).start('a', { kind: 'producer' });
  const text = traceparentOf(context);
  expect(text).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  expect(parseTraceparent(text)).toEqual(context);
  expect(parseTraceparent(text, 'vendor=1')?.traceState).toBe('vendor=1');
});

test.each([
  undefined,
  '',
  'x'.repeat(55),
  `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
  `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'A'.repeat(32)}-${'1'.repeat(16)}-01`,
])('%s is no context', (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

test('spans reach the collector with their trace, attributes and outcome', async () => {
  const collector = await collect();
  const { tracer, exporter } = start(collector.address);
  const parent = tracer.start('Application.create', { kind: 'producer', attributes: { what: 'it' } });
  tracer.start('application.create', { kind: 'consumer', parent: parent.context }).end('it failed');
  parent.end();
  parent.end('said too late');
  await exporter.close();
  const [child, root] = collector.spans;
  expect(collector.spans).toHaveLength(2);
  expect(root).toEqual({
    service: 'principal',
    name: 'Application.create',
    kind: 'producer',
    traceId: parent.context.traceId,
    spanId: parent.context.spanId,
    parentId: '',
    attributes: { side: 'hub', what: 'it' },
    error: undefined,
  });
  expect(child).toMatchObject({ traceId: root?.traceId, parentId: root?.spanId, error: 'it failed' });
  expect(collector.refusals).toEqual([]);
});

test.each(['internal', 'server', 'client', 'producer', 'consumer'] as const)('a span of kind %s', async (kind) => {
  const collector = await collect();
  const { tracer, exporter } = start(collector.address);
  tracer
    .start('it', { kind, secondsAgo: 2, attributes: { text: 'a', count: 7, is_so: true } })
    .end(undefined, { code: 5 });
  await exporter.close();
  expect(collector.refusals).toEqual([]);
  const attributes = { side: 'hub', text: 'a', count: '7', is_so: 'true', code: '5' };
  expect(collector.spans).toMatchObject([{ kind, attributes }]);
});

test('code finds the span that it works for, also later, and only that one', async () => {
  const tracer = new Tracer({ finished: () => undefined });
  const [one, other] = [tracer.start('one', { kind: 'internal' }), tracer.start('other', { kind: 'internal' })];
  const later = async () => {
    await Promise.resolve();
    return tracer.active;
  };
  const found = await Promise.all([tracer.within(one, later), tracer.within(other, later), later()]);
  expect(found).toEqual([one.context, other.context, undefined]);
  expect(tracer.headers).toEqual({});
  expect(tracer.within(one, () => tracer.headers)).toEqual({ traceparent: traceparentOf(one.context) });
});

test('the collector of the tests refuses what is no OTLP', () => {
  const good: FinishedSpan = {
    context: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceState: '' },
    parentId: undefined,
    name: 'it',
    kind: 'client',
    start: BigInt(Date.now()) * 1_000_000n,
    end: BigInt(Date.now()) * 1_000_000n,
    attributes: {},
    error: undefined,
  };
  const read = (span: Partial<FinishedSpan>, service = 'principal') =>
    readExport(encodeExport(service, 'scope', [{ ...good, ...span }]));
  expect(read({})).toHaveLength(1);
  const { context } = good;
  expect(() => read({}, '')).toThrow('service.name');
  expect(() => read({ name: '' })).toThrow('no name');
  expect(() => read({ context: { ...context, traceId: '0'.repeat(32) } })).toThrow('trace_id');
  expect(() => read({ context: { ...context, spanId: '12' } })).toThrow('span_id');
  expect(() => read({ parentId: context.spanId })).toThrow('parent');
  expect(() => read({ end: good.start - 1n })).toThrow('ends before');
  expect(() => read({ start: 1n, end: 1n })).toThrow('today');
  expect(() => read({ attributes: { 'A key': 'a' } })).toThrow('A key');
  expect(() => read({ attributes: { key: 'x'.repeat(600) } })).toThrow('long');
  const bytes = encodeExport('principal', 'scope', [good]);
  expect(() => readExport(Buffer.concat([bytes, Buffer.from([0x12, 0])]))).toThrow('unknown field 2');
  expect(() => readExport(bytes.subarray(0, -1))).toThrow();
});

test('a collector that is away or refuses is told of once, and gets the spans when it takes them', async () => {
  const collector = await startCollector();
  const { tracer, lines } = start(collector.address);
  collector.answer(14, 'later');
  tracer.start('one', { kind: 'internal' }).end();
  await until(() => lines.length === 1);
  expect(lines[0]).toMatchObject({ reason: 'the collector refuses: later' });
  await collector.stop();
  await until(() => lines.length === 2);
  const again = await collect(Number(collector.address.split(':')[1]));
  await until(() => again.spans.length === 1);
  expect(again.spans[0]?.name).toBe('one');
});

test('spans that nobody takes cost bounded memory', async () => {
  const { tracer, exporter, lines } = start('127.0.0.1:1');
  for (let n = 0; n < 10_000; n++) {
    tracer.start(`${n}`, { kind: 'internal' }).end();
  }
  await until(() => lines.length > 0);
  expect(exporter.dropped).toBeGreaterThanOrEqual(10_000 - 2_048 - 512);
});
