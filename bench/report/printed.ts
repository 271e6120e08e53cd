/** A row of a latency table, in milliseconds. */
export interface PrintedLatency {
  readonly what: string;
  readonly p50: number;
  readonly p99: number;
}

/** A table in columns. */
export interface PrintedTable {
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What a benchmark has printed, as far as figures go. */
export interface BenchFigures {
  readonly latencies: readonly PrintedLatency[];
  readonly tables: readonly PrintedTable[];
  /** Lines of a name and figures of several rounds: ` product   1.2 s  1.3 s`, ` log, direct: 1 MiB/s  2 MiB/s`. */
  readonly rounds: readonly { readonly what: string; readonly values: readonly number[]; readonly unit: string }[];
}

const latencyRow = /^ (.+?)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s{3}n=\d+$/;
const roundsRow = /^ (.+?):?\s+((?:[\d.]+ (?:s|MiB\/s)(?:\s{2}|$))+)$/;

/** Reads what `latencies()` and `table()` of the benches have printed; whatever else there is, is left out. */
export function readPrinted(output: string): BenchFigures {
  const latencies: PrintedLatency[] = [];
  const rounds: BenchFigures['rounds'][number][] = [];
  const tables: { heading: string[]; rows: string[][] }[] = [];
  let isInTable = false;
  for (const line of output.split('\n')) {
    const [, what = '', p50, , p99] = latencyRow.exec(line) ?? [];
    if (what !== '') {
      latencies.push({ what, p50: Number(p50), p99: Number(p99) });
      isInTable = false;
      continue;
    }
    const [, name = '', figures = ''] = roundsRow.exec(line) ?? [];
    const values = figures.split(/\s{2,}/).filter((one) => one !== '');
    if (!isInTable && name !== '' && values.length > 1) {
      rounds.push({ what: name, values: values.map(Number.parseFloat), unit: values[0]?.split(' ')[1] ?? '' });
      continue;
    }
    const cells = cellsOf(line);
    const table = tables.at(-1);
    if (isInTable && table !== undefined && cells.length > 1 && cells.length <= table.heading.length) {
      table.rows.push(cells);
    } else {
      isInTable = cells.length > 1;
      if (isInTable) {
        tables.push({ heading: cells, rows: [] });
      }
    }
  }
  return { latencies, rounds, tables: tables.filter(({ rows }) => rows.length > 0) };
}

/** The cells of a line of a table, which has a space before it and two or more between its cells. */
function cellsOf(line: string): string[] {
  const isRow = /^ \S.*\S {2,}\S/.test(line) || /^ {3,}\S/.test(line);
  return isRow ? line.slice(1).split(/ {2,}/) : [];
}
