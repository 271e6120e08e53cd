import type { Fact } from '../facts.ts';
import { goConstants, goText } from './go-source.ts';

/**
 * The environment variables that Go sources read: `env.StringWithDefault("NAME", …)` and others of that package,
 * `os.Getenv("NAME")`, `os.LookupEnv(NAME)`. A name that is a parameter is read where the function is called.
 */
export function readEnvironment(sources: ReadonlyMap<string, string>): Fact[] {
  const constants = goConstants(sources.values());
  return Array.from(sources).flatMap(([file, source]) => {
    const texts = constants(source);
    return Array.from(
      source.matchAll(/\b(?:env\.\w+WithDefault(?:\[\w+\])?|os\.(?:Getenv|LookupEnv))\(\s*("[^"\n]*"|[\w.]+)/g),
      ([, expression = '']): [string, string] => [expression, goText(expression, texts)],
    )
      .filter(([expression, name]) => name !== '…' || /(?:^|\.)[A-Z]\w*$/.test(expression))
      .map(([expression, name]): Fact => ({ kind: 'environment', name: name === '…' ? expression : name, file }));
  });
}
