/** What is read of another project, each with the heading under which it is printed. */
export const factKinds = {
  commands: 'Commands',
  flags: 'Flags',
  environment: 'Environment variables',
  params: 'Params (keys of ConfigMaps)',
  metrics: 'Metrics',
  marks: 'Labels, annotations and finalizers',
  fields: 'Fields of CRDs',
  protocol: 'Protocol (proto files)',
  values: 'Chart values',
  kustomizations: 'Kustomizations',
  tests: 'End-to-end tests',
} as const;

/** One of {@link factKinds}. */
export type FactKind = keyof typeof factKinds;

/** One thing that another project has. */
export interface Fact {
  readonly kind: FactKind;
  /** Tells it apart from all others of its kind in that project. */
  readonly name: string;
  /** The file of the other project that has it. */
  readonly file: string;
  /** The thing of the same kind, or the command, that this one is part of. When that is new, this is not said as well. */
  readonly within?: string;
}
