const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Whether a text is a DNS-1123 label, as the names of namespaces, clusters and agents are. */
export function isDnsLabel(text: string): boolean {
  return label.test(text);
}
