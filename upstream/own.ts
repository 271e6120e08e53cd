import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Executable, FlagSet } from '../lib/ops/index.ts';
import { knownMetadata } from '../site/reference/metadata.ts';
import { openCheckout } from './checkout.ts';
import type { Fact } from './facts.ts';

const root = join(import.meta.dirname, '..');

/** The tree of this project. */
export const ownTree = openCheckout(root);

/** The text of a file of this project. */
export function ownFile(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The commands and flags of executables: from their own definitions, those too that they refuse by name. */
export function ownCommands(executables: readonly Executable[]): (fact: Fact) => boolean {
  const known = new Set<string>();
  for (const { name: executable, commands, groups = [], flags = {} } of executables) {
    known.add(executable);
    for (const flag of Object.keys(flags)) {
      known.add(`${executable} --${flag}`);
    }
    for (const { name, aliases = [] } of [...commands, ...groups]) {
      for (const each of [name, ...aliases]) {
        known.add(`${executable} ${each}`);
      }
    }
    for (const { name, flags: own, unsupported = {} } of commands) {
      for (const flag of [...Object.keys(own), ...Object.keys(unsupported)]) {
        known.add(`${executable} ${name} --${flag}`);
      }
    }
    // A flag of a group is one that all of its commands take.
    for (const { name: group } of groups) {
      const members = commands.filter(({ name }) => name.startsWith(`${group} `));
      const [first, ...others] = members.map((member) => Object.keys(member.flags));
      for (const flag of first ?? []) {
        if (others.every((one) => one.includes(flag))) {
          known.add(`${executable} ${group} --${flag}`);
        }
      }
    }
  }
  return ({ name }) => known.has(name);
}

/** The environment variables that the programs' sources name: each flag has its own, and some have no flag. */
export function ownEnvironment(executables: readonly Executable[]): (fact: Fact) => boolean {
  const variables = executables.flatMap(({ commands, flags = {} }) => {
    const sets: readonly FlagSet[] = [flags, ...commands.map((command) => command.flags)];
    const refused = commands.flatMap(({ unsupported = {} }) => Object.values(unsupported));
    return [...sets.flatMap((set) => Object.values(set).map(({ env }) => env)), ...refused];
  });
  const named = programTexts().flatMap((source) => source.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []);
  const known = new Set([...variables, ...named]);
  return ({ name }) => known.has(name);
}

/** The labels, annotations and finalizers on the page about them, and others that the programs' sources and templates name. */
export function ownMarks(): (fact: Fact) => boolean {
  const texts = [...programTexts(), ...ownTree.read(['{charts,templates}/**/*.{yaml,hbs,tpl}']).values()];
  const named = texts.flatMap((text) => text.match(/[a-z0-9.-]+\.io\/[A-Za-z][\w.-]*/g) ?? []);
  const known = new Set([...Object.keys(knownMetadata), ...named]);
  return ({ name }) => known.has(name);
}

function programTexts(): string[] {
  return [...ownTree.read(['{agent,principal,controller,ctl,lib}/**/*.ts'], ['**/*.test.ts']).values()];
}

/** The metrics on the page about them: all that the programs have, and those that they leave out, with the reason. */
export function ownMetrics(): (fact: Fact) => boolean {
  const page = ownFile('docs/metrics.md');
  const spansIn = (text: string) => Array.from(text.matchAll(/`([a-z_…]+)`/g), ([, name = '']) => name);
  const exact = new Set(spansIn(page).filter((name) => !name.includes('…')));
  const [, leftOut = ''] = page.split('not provided');
  // In this table `argocd_principal_appsets_…` stands for all that begin so. The other tables have some examples like that.
  const patterns = Array.from(leftOut.split('\n## ')[0]?.matchAll(/^\| (`[^|]*) \|/gm) ?? [], ([, cell = '']) => cell)
    .flatMap(spansIn)
    .map((name) => new RegExp(`^${name.replaceAll('…', '.*')}$`));
  return ({ name }) =>
    name.startsWith('…')
      ? [...exact].some((one) => one.endsWith(name.slice(1)))
      : exact.has(name) || patterns.some((pattern) => pattern.test(name));
}

/** The keys that manifests and templates of this project name. */
export function ownParams(patterns: readonly string[]): ReadonlySet<string> {
  const texts = [...ownTree.read(patterns).values()];
  return new Set(texts.flatMap((text) => text.match(/(?<=["'\s])[a-z]\w*(?:[.-]\w+)+(?=["'\s,}:])/g) ?? []));
}
