/** Does something with every item, so many at a time, in their order. Rejects with the first failure. */
export async function inParallel<T>(
  items: Iterable<T>,
  width: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      await act(next.value);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}
