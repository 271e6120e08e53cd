/** Up to three names in the original's form, more are counted. */
export function namesText(names: readonly string[]): string {
  if (names.length <= 3) {
    return `[${names.join(' ')}]`;
  }
  return `[${names.slice(0, 3).join(' ')}]... (${names.length} total)`;
}
