import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Registers metrics of one registry, each with its name, its help text and the names of its labels. */
export interface Instruments {
  counter<L extends string = string>(name: string, help: string, labelNames?: readonly L[]): Counter<L>;
  /** `read`: gives the value at every scrape; without it the value is what was set last. */
  gauge(name: string, help: string, read?: () => number): Gauge;
  /** `buckets`: their upper bounds, ascending; prom-client's own unless given. */
  histogram<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets?: readonly number[],
  ): Histogram<L>;
}

/** The instruments of a registry. */
export function instruments(registry: Registry): Instruments {
  const registers = [registry];
  return {
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, read) =>
      new Gauge({
        name,
        help,
        registers,
        ...(read && {
          collect() {
            (this as Gauge).set(read());
          },
        }),
      }),
    histogram: (name, help, labelNames, buckets) =>
      new Histogram({ name, help, labelNames, registers, ...(buckets && { buckets: [...buckets] }) }),
  };
}
