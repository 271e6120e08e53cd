import type { Fact } from '../facts.ts';
import { goBlock, goConstants, goText } from './go-source.ts';

/**
 * The metrics that Go sources define: `prometheus.GaugeOpts{Name: …}` with namespace and subsystem, and
 * `prometheus.NewDesc(name, …)`. `…` stands for a part of the name that only the running program knows.
 */
export function readMetrics(sources: ReadonlyMap<string, string>): Fact[] {
  const constants = goConstants(sources.values());
  const namesIn = (source: string) => {
    const texts = constants(source);
    const text = (expression: string | undefined) => goText(expression ?? '', texts);
    const options = Array.from(
      source.matchAll(/\b(?:Counter|Gauge|Histogram|Summary)Opts\{/g),
      ({ 0: head, index }) => {
        const block = goBlock(source, index + head.length - 1);
        const field = (name: string) => text(new RegExp(`\\b${name}:\\s*([^,\\n]+)`).exec(block)?.[1]);
        return [field('Namespace'), field('Subsystem'), field('Name')].filter((part) => part !== '').join('_');
      },
    );
    const descriptions = source.matchAll(/\bNewDesc\(\s*(?:\w+\.)?(BuildFQName\([^)]*\)|[^,()]+),/g);
    return [
      ...options,
      ...Array.from(descriptions, ([, expression = '']) =>
        expression.startsWith('BuildFQName(')
          ? expression
              .slice('BuildFQName('.length)
              .split(',')
              .map((part) => text(part.replace(')', '')))
              .filter((part) => part !== '')
              .join('_')
          : text(expression),
      ),
    ];
  };
  return Array.from(sources).flatMap(([file, source]) =>
    namesIn(source)
      .filter((name) => name !== '' && name !== '…')
      .map((name): Fact => ({ kind: 'metrics', name, file })),
  );
}
