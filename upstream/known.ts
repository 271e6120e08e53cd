import { parse } from 'yaml';
import { z } from 'zod';
import { type FactKind, factKinds } from './facts.ts';

/** Something of another project that this one does not have itself, on purpose. */
export interface KnownEntry {
  readonly kind: FactKind;
  readonly name: string;
}

const kinds = Object.keys(factKinds) as FactKind[];
const group = z.strictObject({
  kind: z.enum(kinds),
  // What was done about them, or why nothing was.
  why: z.string().min(1),
  names: z.array(z.string().min(1)).min(1),
});

/**
 * The list of known things, by project.
 * @throws Error that names the place in the text, or something that is there twice
 */
export function parseKnown(text: string, projects: readonly string[]): Readonly<Record<string, KnownEntry[]>> {
  const shape = z.strictObject(Object.fromEntries(projects.map((project) => [project, z.array(group).default([])])));
  const parsed = shape.safeParse(parse(text));
  if (!parsed.success) {
    throw new Error(`upstream/known.yaml: ${z.prettifyError(parsed.error)}`);
  }
  return Object.fromEntries(
    Object.entries(parsed.data).map(([project, groups]) => {
      const entries = groups.flatMap(({ kind, names }) => names.map((name) => ({ kind, name })));
      const seen = new Set<string>();
      for (const { kind, name } of entries) {
        if (seen.has(`${kind} ${name}`)) {
          throw new Error(`upstream/known.yaml: ${project} has ${name} of the kind ${kind} twice`);
        }
        seen.add(`${kind} ${name}`);
      }
      return [project, entries];
    }),
  );
}
