import type { Fact } from './facts.ts';
import type { KnownEntry } from './known.ts';

/** What another project has and this one does not know, and entries of the list of known things that say nothing any more. */
export interface UpstreamNews {
  readonly fresh: readonly Fact[];
  readonly gone: readonly (Pick<Fact, 'kind' | 'name'> & { readonly because: string })[];
}

/**
 * Compares what another project has with what this one has itself (`owns`) and with the list of known things. Parts of
 * something new, and of something that the list has, are not said: a field of a new message, a flag of a new command.
 */
export function compareFacts(
  facts: readonly Fact[],
  owns: (fact: Fact) => boolean,
  known: readonly KnownEntry[],
): UpstreamNews {
  const keyOf = ({ kind, name }: Pick<Fact, 'kind' | 'name'>) => `${kind} ${name}`;
  const listed = new Set(known.map(keyOf));
  const there = new Map(facts.map((fact) => [keyOf(fact), fact]));
  const absent = new Set<string>();
  const fresh: Fact[] = [];
  for (const fact of facts) {
    if (owns(fact)) {
      continue;
    }
    absent.add(keyOf(fact));
    const kind = fact.kind === 'flags' ? 'commands' : fact.kind;
    const isPart = fact.within !== undefined && absent.has(keyOf({ kind, name: fact.within }));
    if (!isPart && !listed.has(keyOf(fact))) {
      fresh.push(fact);
    }
  }
  const gone = known.flatMap(({ kind, name }) => {
    const fact = there.get(keyOf({ kind, name }));
    return fact === undefined
      ? [{ kind, name, because: 'not there' }]
      : owns(fact)
        ? [{ kind, name, because: 'this project has it' }]
        : [];
  });
  return { fresh, gone };
}
