/** Names in argocd-pull-integration's form: up to three in brackets; of more, the first three and the total number. */
export function namesText(names: readonly string[]): string {
  if (names.length <= 3) {
    return `[${names.join(' ')}]`;
  }
  return `[${names.slice(0, 3).join(' ')}]... (${names.length} total)`;
}
