/** The parts of an event id. */
export interface IdentifiedMetadata {
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** `<name>_<uid>`: the id under which argocd-agent orders the events of one Kubernetes object. */
export function resourceIdOf(metadata: IdentifiedMetadata): string {
  return `${metadata.name}_${metadata.uid ?? ''}`;
}

/** `<name>_<uid>_<resourceVersion>`: the id of an event about one version of a Kubernetes object. */
export function eventIdOf(metadata: IdentifiedMetadata): string {
  return `${metadata.name}_${metadata.uid ?? ''}_${metadata.resourceVersion ?? ''}`;
}

/**
 * A moment as Go's RFC3339Nano writes it (UTC, zeros at the end of the fraction trimmed): the form of the `sentat`
 * extension. Milliseconds are exact enough for the start of a latency measurement.
 */
export function sentAt(moment: Date): string {
  return moment.toISOString().replace(/\.?0+Z$/, 'Z');
}
