/** What whole objects may be logged of: writes to the API server, events to and from the peer, changes seen. */
export type DetailCategory = 'actions' | 'events' | 'informers';

/** The categories of `--full-detail`. */
export type Detail = ReadonlySet<DetailCategory>;

const categories: readonly DetailCategory[] = ['actions', 'events', 'informers'];

/** Reads `--full-detail`; as in the originals an unknown category is named in a warning and left out. */
export function parseDetail(
  values: readonly string[],
  logger: { warn(fields: object, message: string): void },
): Detail {
  const chosen = new Set<DetailCategory>();
  for (const value of values.map((text) => text.trim().toLowerCase())) {
    const category = categories.find((known) => known === value);
    if (value === 'all') {
      for (const every of categories) {
        chosen.add(every);
      }
    } else if (category !== undefined) {
      chosen.add(category);
    } else if (value !== '') {
      logger.warn({ category: value, known: [...categories, 'all'] }, '--full-detail names no known category');
    }
  }
  return chosen;
}

/** An object as it may be logged: a Secret's contents never are. */
export function detailOf(object: unknown, kind?: string): unknown {
  return (kind ?? (object as { kind?: unknown } | undefined)?.kind) === 'Secret' ? '<redacted: Secret>' : object;
}
