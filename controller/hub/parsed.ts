/** Something from outside: its value, or what is wrong with it as a message that names object and field. */
export type Parsed<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly value?: never; readonly problem: string };
