import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** Every file of the project with the project's own files that it imports, both relative to the root. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const ignored = new Set(['node_modules', 'dist', '.git', '.cache']);

/** Reads the import graph of all TypeScript below a folder, as text: static and dynamic imports and re-exports. */
export function readImports(root: string): ImportGraph {
  const graph = new Map<string, string[]>();
  for (const file of sources(root)) {
    const text = readFileSync(join(root, file), 'utf8');
    const found = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map(([, path = '']) => path);
    graph.set(file, [...new Set(found.map((path) => relative(root, resolve(root, dirname(file), path))))]);
  }
  return graph;
}

/** The paths of all TypeScript files below a folder, relative to it. */
export function* sources(root: string, folder = ''): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !ignored.has(entry.name)) {
      yield* sources(root, path);
    } else if (entry.isFile() && entry.name.endsWith('.ts')) {
      yield path;
    }
  }
}

const programs = ['controller', 'principal', 'agent', 'ctl'];
const isTest = (file: string) => file.endsWith('.test.ts');
const isForTests = (file: string) => isTest(file) || /\/testing(\/|\.ts$)|^(e2e|bench|simulation)\//.test(file);
const roomOf = (file: string) =>
  file
    .split('/')
    .slice(0, file.startsWith('lib/') ? 2 : 1)
    .join('/');

/** One import that breaks a rule of the house, in words. */
export function brokenWalls(graph: ImportGraph): string[] {
  const broken: string[] = [];
  for (const [file, imports] of graph) {
    const from = roomOf(file);
    for (const target of imports) {
      const to = roomOf(target);
      const report = (rule: string) => broken.push(`${file} imports ${target}: ${rule}`);
      if (from === to) {
        continue;
      }
      const isHelperOfTests = isForTests(file) && ['e2e', 'simulation'].includes(to);
      if (programs.includes(from) && to !== 'proto' && !to.startsWith('lib/') && !isTest(file) && !isHelperOfTests) {
        report('a program imports only lib and proto');
      }
      if (from.startsWith('lib/') && !to.startsWith('lib/') && to !== 'proto' && !isTest(file) && !isHelperOfTests) {
        report('lib imports only lib and proto');
      }
      if (['lib/sync', 'lib/argocd'].includes(from) && ['lib/kube', 'lib/wire', 'proto'].includes(to)) {
        report('the engine and the rules know neither Kubernetes nor gRPC');
      }
      if (from === 'lib/base' && !isTest(file)) {
        report('the ground floor imports nothing of the house');
      }
      const isFace = target === `${to}/index.ts` || (isForTests(file) && target === `${to}/testing.ts`);
      if (to.startsWith('lib/') && !isFace) {
        report(`import ${to}/index.ts, its public face`);
      }
      if (['e2e', 'bench'].includes(from) && programs.includes(to)) {
        report('programs are run, not imported');
      }
    }
  }
  return broken;
}

/** The files of one import cycle, the first named again at the end; undefined when there is none. */
export function findCycle(graph: ImportGraph): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) {
      return [...path.slice(path.indexOf(file)), file];
    }
    if (done.has(file)) {
      return undefined;
    }
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...path, file]);
      if (cycle) {
        return cycle;
      }
    }
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle) {
      return cycle;
    }
  }
  return undefined;
}
