import { styleText } from 'node:util';

/** One line of the table at the end. */
export interface Measured {
  what: string;
  ms: number;
  note?: string;
}

/** Tells what a step waits for at the moment. Printed when the step takes long, and again when it changes. */
export type WaitsFor = (text: string) => void;

/** A step that takes longer says so, and what it waits for. */
const longMs = 3_000;
/** How often a long step says that it goes on, if nothing changes. */
const remindMs = 10_000;
/** How often {@link Progress.passing} prints where nothing can be replaced. */
const passingMs = 15_000;

/** Prints the steps of the demo as they happen and remembers what each took. */
export class Progress {
  readonly #rows: Measured[] = [];
  readonly #start = performance.now();
  readonly #colour: boolean;
  #passing: { at: number; isShown: boolean } = { at: Number.NEGATIVE_INFINITY, isShown: false };

  /** Colours, and lines that replace each other, are for terminals. */
  constructor(options: { colour: boolean }) {
    this.#colour = options.colour;
  }

  /** A heading of the demo. */
  chapter(text: string): void {
    this.#print(`\n${this.#styled('bold', text)}\n`);
  }

  /** A line that says what happens now. */
  say(text: string): void {
    this.#print(`  ${this.#clock()}  ${text}\n`);
  }

  /** Text that stands for itself, without a time. */
  text(text: string): void {
    this.#print(`${text}\n`);
  }

  /** A line that says how something goes on: the next line replaces it. Where that cannot be, only some are printed. */
  passing(text: string): void {
    if (this.#colour) {
      const line = `  ${this.#clock()}  … ${text}`.slice(0, (process.stdout.columns || 80) - 1);
      this.#print(this.#styled('dim', line));
      this.#passing.isShown = true;
    } else if (performance.now() - this.#passing.at > passingMs) {
      this.#passing.at = performance.now();
      this.say(`… ${text}`);
    }
  }

  /** Runs a step, prints it with the time it took, and puts it into the table. */
  async step<T>(what: string, run: (waitsFor: WaitsFor) => Promise<T>): Promise<T> {
    const begin = performance.now();
    this.say(`${what} …`);
    const waiting = this.#whileLong(begin);
    try {
      const result = await run(waiting.waitsFor);
      this.measured(what, performance.now() - begin);
      return result;
    } finally {
      waiting.end();
    }
  }

  /** Puts a figure that was measured elsewhere into the table. */
  measured(what: string, ms: number, note?: string): void {
    this.#rows.push({ what, ms, ...(note !== undefined && { note }) });
    this.say(`${this.#styled('green', '✓')} ${what} (${duration(ms)})${note ? `: ${note}` : ''}`);
  }

  /** The table of everything measured. */
  table(): string {
    const width = Math.max(...this.#rows.map((row) => row.what.length));
    const line = `${'─'.repeat(width + 2)}┼${'─'.repeat(12)}`;
    const rows = this.#rows.map(({ what, ms, note }) =>
      ` ${what.padEnd(width)} │ ${duration(ms).padStart(9)}  ${note ?? ''}`.trimEnd(),
    );
    return [` ${'Step'.padEnd(width)} │      Time`, line, ...rows].join('\n');
  }

  #whileLong(begin: number) {
    let reason = '';
    let printed = '';
    let printedAt = begin;
    const look = () => {
      const now = performance.now();
      if (now - begin < longMs || (reason === printed && now - printedAt < remindMs)) {
        return;
      }
      printed = reason;
      printedAt = now;
      this.say(this.#styled('dim', `… ${Math.round((now - begin) / 1_000)} s${reason && `, waiting: ${reason}`}`));
    };
    const timer = setInterval(look, 500);
    return {
      waitsFor: (text: string) => {
        reason = text;
      },
      end: () => clearInterval(timer),
    };
  }

  #print(text: string): void {
    process.stdout.write(this.#passing.isShown ? `\r\u001b[K${text}` : text);
    this.#passing.isShown = false;
  }

  #clock(): string {
    return clock(performance.now() - this.#start);
  }

  #styled(style: 'bold' | 'dim' | 'green', text: string): string {
    return this.#colour ? styleText(style, text, { validateStream: false }) : text;
  }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
}
