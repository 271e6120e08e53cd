/** One line of the table at the end. */
export interface Measured {
  what: string;
  ms: number;
  note?: string;
}

/** Prints the steps of the demo as they happen and remembers what each took. */
export class Progress {
  readonly #rows: Measured[] = [];
  readonly #start = Date.now();

  /** A heading of the demo. */
  chapter(text: string): void {
    process.stdout.write(`\n\x1b[1m${text}\x1b[0m\n`);
  }

  /** A line that says what happens now. */
  say(text: string): void {
    process.stdout.write(`  ${clock(Date.now() - this.#start)}  ${text}\n`);
  }

  /** Runs a step, prints it with the time it took, and puts it into the table. */
  async step<T>(what: string, run: () => Promise<T>): Promise<T> {
    const begin = performance.now();
    this.say(`${what} …`);
    const result = await run();
    this.measured(what, performance.now() - begin);
    return result;
  }

  /** Puts a figure that was measured elsewhere into the table. */
  measured(what: string, ms: number, note?: string): void {
    this.#rows.push({ what, ms, ...(note !== undefined && { note }) });
    this.say(`\x1b[32m✓\x1b[0m ${what} (${duration(ms)})${note ? `: ${note}` : ''}`);
  }

  /** The table of everything measured. */
  table(): string {
    const width = Math.max(...this.#rows.map((row) => row.what.length));
    const line = `${'─'.repeat(width + 2)}┼${'─'.repeat(12)}`;
    const rows = this.#rows.map(
      ({ what, ms, note }) => ` ${what.padEnd(width)} │ ${duration(ms).padStart(9)}  ${note ?? ''}`,
    );
    return [` ${'Step'.padEnd(width)} │      Time`, line, ...rows].join('\n');
  }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
}
