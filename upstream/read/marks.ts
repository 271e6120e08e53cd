import type { Fact } from '../facts.ts';

/** The labels, annotations and finalizers of Argo CD and OCM that Go sources name: `"apps.open-cluster-management.io/…"`. */
export function readMarks(sources: ReadonlyMap<string, string>): Fact[] {
  const mark = /"((?:[a-z0-9-]+\.)*(?:argoproj(?:-labs)?\.io|open-cluster-management\.io)\/[A-Za-z][\w.-]*)"/g;
  return Array.from(sources).flatMap(([file, source]) =>
    Array.from(source.matchAll(mark), ([, name = '']) => name)
      // A group with its version is no mark.
      .filter((name) => !/\/v\d+(?:(?:alpha|beta)\d+)?$/.test(name))
      .map((name): Fact => ({ kind: 'marks', name, file })),
  );
}
