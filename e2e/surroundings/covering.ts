/** The values that each column of a table may have, in order. */
export type Columns = Readonly<Record<string, readonly string[]>>;

/** One row of a table: a value for each column. */
export type RowOf<C extends Columns> = { readonly [K in keyof C]: C[K][number] };

/**
 * The shortest table that a greedy choice finds in which every two values of different columns stand together in some row, as
 * far as a possible row has both. Its first rows have each value. The same columns give the same table.
 */
export function coveringTable<C extends Columns>(columns: C, isPossible: (row: RowOf<C>) => boolean): RowOf<C>[] {
  const possible = product(Object.entries(columns))
    .map((entries) => Object.fromEntries(entries) as RowOf<C>)
    .filter(isPossible)
    .map((row) => ({ row, parts: [...valuesOf(row), ...pairsOf(row)] }));
  const open = new Set(possible.flatMap(({ parts }) => parts));
  const table: RowOf<C>[] = [];
  while (open.size > 0) {
    const gains = possible.map(({ parts }) => parts.filter((part) => open.has(part)).length);
    const best = possible[gains.indexOf(Math.max(...gains))];
    if (best === undefined) {
      break;
    }
    table.push(best.row);
    for (const part of best.parts) {
      open.delete(part);
    }
  }
  return table;
}

/** Every two values of a row, in words. */
export function pairsOf(row: Readonly<Record<string, string>>): string[] {
  const values = valuesOf(row);
  return values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one}, ${other}`));
}

const valuesOf = (row: Readonly<Record<string, string>>) =>
  Object.entries(row).map(([column, value]) => `${column}: ${value}`);

type Entry = readonly [column: string, value: string];

function product(columns: readonly (readonly [string, readonly string[]])[]): Entry[][] {
  const [first, ...rest] = columns;
  if (first === undefined) {
    return [[]];
  }
  const [column, values] = first;
  const others = product(rest);
  return values.flatMap((value) => others.map((entries) => [[column, value] as const, ...entries]));
}
