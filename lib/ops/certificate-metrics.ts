import { Gauge, type Registry } from 'prom-client';
import { certificatesOf } from './pem.ts';

/**
 * Registers when certificates expire, in seconds of Unix time, by label `certificate`. `read` is called at every scrape and
 * gives the PEM text of each: of a chain the first certificate counts, of a bundle (`trust`) the one that lives longest.
 */
export function certificateMetrics(
  registry: Registry,
  name: string,
  read: () => Iterable<{ readonly certificate: string; readonly pem: string | undefined; readonly isTrust?: boolean }>,
): void {
  new Gauge({
    name,
    help: 'Unix time at which each certificate expires, in seconds',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { certificate, pem, isTrust = false } of read()) {
        const ends = pem === undefined ? [] : certificatesOf(certificate, pem).map((one) => one.validToDate.getTime());
        const [end] = isTrust ? [Math.max(...ends)] : ends;
        if (end !== undefined && Number.isFinite(end)) {
          this.set({ certificate }, end / 1_000);
        }
      }
    },
  });
}
