/**
 * What is made is shared by all who ask while it is made, and for some time after it was asked for: however many ask, it is made no
 * more often than that. A failure is not kept.
 */
export function keptFor<T>(
  ms: number,
  make: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let kept: { readonly made: Promise<T>; readonly since: number; isDone: boolean } | undefined;
  return () => {
    if (kept !== undefined && (!kept.isDone || now() - kept.since < ms)) {
      return kept.made;
    }
    const mine = { made: make(), since: now(), isDone: false };
    kept = mine;
    mine.made.then(
      () => {
        mine.isDone = true;
      },
      () => {
        kept = kept === mine ? undefined : kept;
      },
    );
    return mine.made;
  };
}
