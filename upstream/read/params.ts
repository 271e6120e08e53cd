import type { Fact } from '../facts.ts';

/**
 * The keys of ConfigMaps that the containers of manifests, or of templates for them, get as environment variables, and the
 * keys in `data` of a ConfigMap of parameters. It is read line by line, since templates are no YAML.
 * @param prefix what the names begin with, as a program's own parameters are told apart
 */
export function readParams(manifests: ReadonlyMap<string, string>, prefix = ''): Fact[] {
  return Array.from(manifests).flatMap(([file, text]) => {
    const keys = [...referredKeys(text.split('\n')), ...(/^kind: ConfigMap$/m.test(text) ? dataKeys(text) : [])];
    return [...new Set(keys)].map((key): Fact => ({ kind: 'params', name: `${prefix}${key}`, file }));
  });
}

const indentOf = (line: string) => line.length - line.trimStart().length;

function* referredKeys(lines: readonly string[]): Generator<string> {
  for (const [index, line] of lines.entries()) {
    const start = line.indexOf('configMapKeyRef:');
    if (start < 0) {
      continue;
    }
    const end = lines.findIndex((other, at) => at > index && indentOf(other) <= indentOf(line));
    const block = [line.slice(start), ...lines.slice(index + 1, end < 0 ? undefined : end)].join('\n');
    const key = /\bkey: ["']?([\w./-]+)/.exec(block)?.[1];
    if (key !== undefined) {
      yield key;
    }
  }
}

function* dataKeys(text: string): Generator<string> {
  for (const [, key = ''] of text.matchAll(/^ {2}([\w-]+(?:\.[\w-]+)+):/gm)) {
    yield key;
  }
}
