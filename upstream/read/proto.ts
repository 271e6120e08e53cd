import type { Fact } from '../facts.ts';

/** Messages, enumerations, their fields, services and their methods of proto files, each as it goes over the wire. */
export function readProto(sources: ReadonlyMap<string, string>): Fact[] {
  return Array.from(sources).flatMap(([file, source]) => {
    const text = source.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g, ' ').replace(/\s+/g, ' ');
    const facts: Fact[] = [];
    const root = /\bpackage ([\w.]+) ?;/.exec(text)?.[1] ?? '';
    // The names of the blocks around. One without a name (oneof, options) holds fields of what is around it.
    let scope = [root];
    const above = () => scope.filter((name) => name !== '').join('.');
    const add = (name: string) =>
      facts.push({ kind: 'protocol', name, file, ...(above() === root ? {} : { within: above() }) });
    const tokens =
      /\b(?:message|enum|service) (\w+) ?\{|\b(rpc \w+ ?\([\w. ]+\) ?returns ?\([\w. ]+\))|([\w.<>, ]+? \w+ ?= ?\d+) ?[;[]|([A-Z]\w* ?= ?-?\d+) ?[;[]|\{|\}/g;
    for (const [token, type, method, field, value] of text.matchAll(tokens)) {
      if (type !== undefined) {
        add([above(), type].filter((name) => name !== '').join('.'));
        scope = [...scope, type];
      } else if (method !== undefined) {
        add(`${above()} ${spaced(method)}`);
      } else if (field !== undefined || value !== undefined) {
        add(`${above()} ${spaced(field ?? value ?? '')}`);
      } else {
        scope = token === '{' ? [...scope, ''] : scope.slice(0, -1);
      }
    }
    return facts;
  });
}

/** With the same blanks, however it was written. */
function spaced(text: string): string {
  return text
    .replace(/ ?([=(),<>]) ?/g, '$1')
    .replace('=', ' = ')
    .replace('>', '> ')
    .replace(')returns(', ') returns (')
    .trim();
}
