/** Arguments of a command, and those after `--`, which are for the container engine. */
export function withEngineFlags(args: readonly string[]): { own: string[]; flags: string[] } {
  const at = args.indexOf('--');
  return at === -1 ? { own: [...args], flags: [] } : { own: args.slice(0, at), flags: args.slice(at + 1) };
}
