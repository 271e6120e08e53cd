import type { BenchFigures } from './printed.ts';

/** Whose a figure is. */
export type Tone = 'own' | 'floor' | 'other';

/** Bars of one unit, one below the other. `more` is the fainter rest of a bar: what the slowest of a hundred take. */
export interface Plot {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly {
    readonly label: string;
    readonly tone: Tone;
    readonly value: number;
    readonly more?: number;
  }[];
}

/** What of a benchmark is drawn. */
export interface PlotRules {
  /** Columns of its tables: the heading, and what it means. */
  readonly columns?: Readonly<Record<string, string>>;
}

/** What was printed by one implementation. */
export interface FiguresBy {
  readonly tone: 'own' | 'other';
  readonly printed: BenchFigures;
}

/** Names of the floors in the rows of latencies and rounds. */
const floors = ['floor', 'direct', 'copied'];
const implementation = { own: 'this project', other: 'the other' };

/** The plots of one benchmark, of one or two implementations in it. */
export function plotsOf(all: readonly FiguresBy[], rules: PlotRules): Plot[] {
  const plots = new Map<string, { unit: string; bars: Plot['bars'][number][] }>();
  const add = (title: string, unit: string, bar: Plot['bars'][number]) => {
    const plot = plots.get(title) ?? { unit, bars: [] };
    plots.set(title, plot);
    plot.bars.push(bar);
  };
  const named = (name: string, tone: 'own' | 'other'): { label: string; tone: Tone } =>
    floors.includes(name)
      ? { label: tone === 'own' ? name : `${name}, in the run of the other`, tone: 'floor' }
      : { label: name === '' || all.length > 1 ? [name, implementation[tone]].filter(Boolean).join(', ') : name, tone };
  for (const { tone, printed } of all) {
    for (const { what, p50, p99 } of printed.latencies) {
      const [, title = what, name = ''] = /^(.*), (\w+)$/.exec(what) ?? [];
      add(`${title} (p50; faint: p99)`, 'ms', { ...named(name, tone), value: p50, more: p99 });
    }
    for (const { what, values, unit } of printed.rounds) {
      const [, title = 'burst', name = what] = /^(.*), (\w+)$/.exec(what) ?? [];
      add(`${title} (median)`, unit, { ...named(name, tone), value: median(values) });
    }
    for (const { heading, rows } of printed.tables) {
      for (const [column, title] of Object.entries(rules.columns ?? {})) {
        const index = heading.indexOf(column);
        for (const row of index < 0 ? [] : rows) {
          const [, figure, unit = ''] = /^([\d.]+) ?(s|ms|MB)?$/.exec(row[index] ?? '') ?? [];
          if (figure !== undefined) {
            const label = all.length > 1 ? `${row[0]}, ${implementation[tone]}` : (row[0] ?? '');
            add(title, unit, { label, tone, value: Number(figure) });
          }
        }
      }
    }
  }
  return Array.from(plots, ([title, plot]) => ({ title, ...plot }));
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
