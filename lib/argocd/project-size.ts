import type { AppProject } from './application.ts';

/** Characters of patterns that are matched for one AppProject: that takes time in proportion to them, whoever wrote them. */
export const mostPatternCharacters = 128 * 1024;
/** Entries of one list of an AppProject whose entries are matched. */
export const mostEntries = 5_000;

// Decisions about a project are made for each agent, and a cache gives the same object each time.
const known = new WeakMap<AppProject, { readonly excess: string | undefined }>();

/**
 * Why an AppProject of the hub is too large to be matched against clusters, namespaces and sources; undefined: it is not. Such a
 * project goes to nobody, and permits nothing. A text without the characters of a glob is only compared, and does not count.
 * @param project as Argo CD uses it (`virtualProject`)
 */
export function excessOf(project: AppProject): string | undefined {
  let found = known.get(project);
  if (found === undefined) {
    found = { excess: measure(project) };
    known.set(project, found);
  }
  return found.excess;
}

function measure({ spec }: AppProject): string | undefined {
  const windows = listOf(spec.syncWindows);
  const destinations = listOf(spec.destinations);
  const accounts = listOf(spec.destinationServiceAccounts);
  const texts = {
    sourceNamespaces: listOf(spec.sourceNamespaces),
    sourceRepos: listOf(spec.sourceRepos),
    'syncWindows[].clusters': windows.flatMap((window) => listOf(fieldOf(window, 'clusters'))),
  };
  const lists = { destinations, syncWindows: windows, destinationServiceAccounts: accounts, ...texts };
  const [field, list] = Object.entries(lists).find(([, { length }]) => length > mostEntries) ?? [];
  if (field !== undefined) {
    return `spec.${field} has ${list?.length} entries, and ${mostEntries} are the most that are matched: use globs, or split the project`;
  }
  const patterns = [
    ...destinations.flatMap((one) => [fieldOf(one, 'name'), fieldOf(one, 'server')]),
    ...accounts.map((one) => fieldOf(one, 'server')),
    ...Object.values(texts).flat(),
  ];
  const characters = patterns.reduce<number>((sum, one) => sum + (isPattern(one) ? one.length : 0), 0);
  return characters > mostPatternCharacters
    ? `its patterns for clusters, namespaces and sources have ${characters} characters, and ${mostPatternCharacters} are the most that are matched: shorten them, or split the project`
    : undefined;
}

function isPattern(value: unknown): value is string {
  return typeof value === 'string' && /[*?[{\\]/.test(value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function fieldOf(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | null | undefined)?.[name];
}
