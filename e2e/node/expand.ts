/**
 * Replaces `$(NAME)` by the variable's value. `$$(NAME)` stands for a literal `$(NAME)`; a reference to an unknown
 * variable stays as it is. The rule of the core API for `command`, `args` and `env[].value`.
 */
export function expand(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(/\$\$|\$\(([^()$]*)\)/g, (whole: string, name: string | undefined) => {
    if (whole === '$$') {
      return '$';
    }
    return (name !== undefined ? variables.get(name) : undefined) ?? whole;
  });
}
