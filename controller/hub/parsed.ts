/** Parsed input: its value, or the problem as a message that names object and field. */
export type Parsed<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly value?: never; readonly problem: string };
