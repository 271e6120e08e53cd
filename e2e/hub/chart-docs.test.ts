import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { addonChart, agentChart, hubArgoCdChart, principalChart, pullChart } from './helm.ts';

interface Schema {
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  propertyNames?: { enum?: string[] };
}

/** The dotted paths of all values; lists and maps that are empty are values themselves. */
function paths(values: unknown, path: string[] = []): string[][] {
  if (typeof values !== 'object' || values === null || Array.isArray(values) || Object.keys(values).length === 0) {
    return [path];
  }
  return Object.entries(values).flatMap(([key, value]) => paths(value, [...path, key]));
}

const valuesOf = (chart: string) => paths(parse(readFileSync(join(chart, 'values.yaml'), 'utf8')));
const readmeOf = (chart: string) => readFileSync(join(chart, 'README.md'), 'utf8');
const isNamed = (readme: string, path: string) => readme.includes(`| \`${path}\` |`);

describe("the chart's documentation", () => {
  it('has every value in the README', () => {
    const missing = [
      ...valuesOf(addonChart).map((path) => path.join('.')),
      ...valuesOf(hubArgoCdChart).map((path) => ['hubArgoCD', ...path].join('.')),
    ].filter((path) => !isNamed(readmeOf(addonChart), path));
    expect(missing).toEqual([]);
    for (const chart of [agentChart, principalChart, pullChart]) {
      const readme = readmeOf(chart);
      const all = valuesOf(chart).map((path) => path.join('.'));
      expect(all.filter((path) => !isNamed(readme, path))).toEqual([]);
    }
  });

  it.each([addonChart, agentChart, principalChart, pullChart, hubArgoCdChart])(
    'has every value of %s in the schema',
    (chart) => {
      const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as Schema;
      const unknown = valuesOf(chart).filter((path) => {
        let at: Schema | undefined = schema;
        for (const key of path) {
          if (at && !at.properties) {
            return false;
          }
          at = at?.properties?.[key];
        }
        return at === undefined;
      });
      expect(unknown).toEqual([]);
    },
  );

  it.each([addonChart, agentChart, principalChart, pullChart, hubArgoCdChart])(
    'says which names are known where %s refuses one',
    (chart) => {
      const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as Schema;
      for (const { path, closed } of closedIn(schema)) {
        expect(closed.propertyNames?.enum, path).toEqual(Object.keys(closed.properties ?? {}));
      }
    },
  );
});

/** The objects of a schema that admit no other properties than theirs. */
function closedIn(schema: Schema, path = ''): { path: string; closed: Schema }[] {
  const isClosed = schema.additionalProperties === false && schema.properties !== undefined;
  const below = Object.entries(schema).flatMap(([key, value]) =>
    typeof value === 'object' && value !== null ? closedIn(value as Schema, `${path}/${key}`) : [],
  );
  return [...(isClosed ? [{ path, closed: schema }] : []), ...below];
}
