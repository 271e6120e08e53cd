/** How a log line names an Application: `namespace/name`. */
export function displayName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
