/** A table in columns: the first to the left, the others to the right. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heading, ...rows];
  const widths = heading.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 2)))
        .join(''),
    )
    .map((line) => ` ${line}`)
    .join('\n');
}

/** Writes to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** For a table. */
export const seconds = (value: number) => `${value.toFixed(2)} s`;

/** For a table. */
export const milliseconds = (value: number) => `${value.toFixed(2)} ms`;

/** For a table; a megabyte is 2^20 bytes. */
export const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`;
