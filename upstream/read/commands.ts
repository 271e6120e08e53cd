import type { Fact } from '../facts.ts';
import { type GoFunction, goFunctions } from './go-source.ts';

const type =
  '(?:String|Bool|BoolFunc|Bytes|Count|Duration|Float|Float32|Float64|Func|IP|IPMask|IPNet|Text|Time|U?[Ii]nt(?:8|16|32|64)?)' +
  '(?:Slice|Array|To[A-Z]\\w+)?';
/** `c.Flags().StringVarP(&value, "name", …)`, `flags.Bool("name", …)`, `flag.Var(value, "name", …)`. */
const definition = new RegExp(
  `\\b(?:(?:Persistent)?Flags\\(\\)|flag|flags|flagSet|fs)\\s*\\.\\s*(?:(?:${type})?VarP?\\(\\s*[^,"\`]+,|${type}P?\\()\\s*"([^"\\n]+)"`,
  'g',
);

/** The names of the flags that a part of a Go program defines. */
function flagsIn(body: string): string[] {
  return Array.from(body.matchAll(definition), ([, name = '']) => name);
}

/** The flags of a program that has no commands, as flags of `program`. */
export function readFlags(program: string, sources: ReadonlyMap<string, string>): Fact[] {
  return Array.from(sources).flatMap(([file, source]) =>
    flagsIn(source).map((name): Fact => ({ kind: 'flags', name: `${program} --${name}`, file })),
  );
}

/**
 * The commands of a program with cobra, and their flags. A function makes one command and says its name with `Use`. It adds
 * others with `AddCommand(function())`, and may have its flags added by functions that it calls with the command.
 */
export function readCommands(sources: ReadonlyMap<string, string>): Fact[] {
  const functions = new Map(
    Array.from(sources)
      .flatMap(([file, source]) => goFunctions(file, source))
      .map((one) => [one.name, one]),
  );
  const children = ({ body }: GoFunction) =>
    Array.from(body.matchAll(/\bAddCommand\(\s*(\w+)\(/g), ([, name = '']) => functions.get(name)).filter(
      (child) => child !== undefined,
    );
  const added = new Set([...functions.values()].flatMap(children));
  const facts: Fact[] = [];
  const visit = (maker: GoFunction, above: readonly GoFunction[], path: string) => {
    const word = /\bUse:\s*"([^"\s]+)/.exec(maker.body)?.[1];
    if (word === undefined || above.includes(maker)) {
      return;
    }
    const name = path === '' ? word : `${path} ${word}`;
    facts.push({ kind: 'commands', name, file: maker.file, ...(path === '' ? {} : { within: path }) });
    const helpers = Array.from(maker.body.matchAll(/(?<![\w.])(\w+)\((?:cmd|command|rootCmd)\b/g), ([, helper = '']) =>
      functions.get(helper),
    );
    for (const { body, file } of [maker, ...helpers.filter((helper) => helper !== undefined)]) {
      facts.push(
        ...flagsIn(body).map((flag): Fact => ({ kind: 'flags', name: `${name} --${flag}`, file, within: name })),
      );
    }
    for (const child of children(maker)) {
      visit(child, [...above, maker], name);
    }
  };
  for (const root of functions.values()) {
    if (!added.has(root)) {
      visit(root, [], '');
    }
  }
  return facts;
}
