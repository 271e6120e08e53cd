/** Where the sync classes write what happened; a pino logger fits. */
export interface SyncLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** How a log line names an Application: `namespace/name`. */
export function displayName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
