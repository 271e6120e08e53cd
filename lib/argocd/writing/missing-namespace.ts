/** The hub has no namespace for an agent's mirrors, and it could not be made. */
export class MissingNamespace extends Error {
  override readonly name = 'MissingNamespace';
}

/** Makes a namespace, or throws a {@link MissingNamespace} that says why there is none. */
export function namespaceMaker(
  ensure: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined,
): (namespace: string, signal: AbortSignal) => Promise<void> {
  return async (namespace, signal) => {
    if (ensure === undefined) {
      throw new MissingNamespace(`the hub has no namespace ${namespace}, and the principal may not create it`);
    }
    try {
      await ensure(namespace, signal);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new MissingNamespace(`the hub's namespace ${namespace} cannot be made: ${reason}`, { cause: error });
    }
  };
}
