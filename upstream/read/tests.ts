import type { Fact } from '../facts.ts';
import { goFunctions } from './go-source.ts';

/** The tests of Go sources: those of suites as `Suite.Test`, functions that start no suite, and those of Ginkgo by their texts. */
export function readTests(sources: ReadonlyMap<string, string>): Fact[] {
  return Array.from(sources).flatMap(([file, source]) =>
    [...suiteTests(source), ...functionTests(file, source), ...ginkgoTests(source)].map(
      (name): Fact => ({ kind: 'tests', name, file }),
    ),
  );
}

function suiteTests(source: string): string[] {
  return Array.from(
    source.matchAll(/^func \(\w+ \*?(\w+)\) (Test\w*)\(\)/gm),
    ([, suite = '', name = '']) => `${suite}.${name}`,
  );
}

function functionTests(file: string, source: string): string[] {
  return goFunctions(file, source)
    .filter(({ name, body }) => /^Test/.test(name) && /^\w+ \*testing\.T\)/.test(body))
    .filter(({ body }) => !/\bsuite\.Run\(|\bRunSpecs\(/.test(body))
    .map(({ name }) => name);
}

function ginkgoTests(source: string): string[] {
  let container = '';
  let context = '';
  const names: string[] = [];
  for (const [, word, text = ''] of source.matchAll(/\b(Describe|Context|When|It|Entry)\("((?:[^"\\\n]|\\.)*)"/g)) {
    if (word === 'Describe') {
      container = text;
      context = '';
    } else if (word === 'It' || word === 'Entry') {
      names.push([container, context, text].filter((part) => part !== '').join(' / '));
    } else {
      context = text;
    }
  }
  return names;
}
