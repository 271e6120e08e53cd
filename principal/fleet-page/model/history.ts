/** How often figures are kept, and how many of each: those of the last hour. */
export const historyStepMs = 15_000;
const historyLength = 240;

/** The last values of a figure, oldest first; older ones are dropped. Takes 1 KB. */
export class FigureHistory {
  readonly #values = new Float32Array(historyLength);
  #written = 0;

  push(value: number): void {
    this.#values[this.#written % historyLength] = value;
    this.#written++;
  }

  get values(): number[] {
    const start = Math.max(0, this.#written - historyLength);
    return Array.from(
      { length: this.#written - start },
      (_, index) => this.#values[(start + index) % historyLength] ?? 0,
    );
  }
}
