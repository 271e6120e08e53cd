import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { addonChart, agentChart, helm, hubArgoCdChart, principalChart, pullChart, withoutHub } from './helm.ts';

// A tool that renders a chart applies what it renders, again and again: two renderings are equal, and what a rendering cannot know
// is no guess.

const root = join(import.meta.dirname, '../..');
const charts = [addonChart, agentChart, hubArgoCdChart, principalChart, pullChart];

const template = (chart: string, ...args: string[]) =>
  helm(['template', 'fleet', chart, '--namespace', 'argocd', '--include-crds', ...args]);

/** Two renderings must have the same bytes. */
async function expectEqual(chart: string, ...args: string[]): Promise<void> {
  const all = [...withoutHub(chart), ...args];
  const text = await template(chart, ...all);
  expect(text).toContain('kind: Deployment');
  expect(await template(chart, ...all)).toBe(text);
}

/** What each chart has by default. */
const defaults = new Map(
  charts.map((chart) => [chart, parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as unknown]),
);

/** Whether values are values of a chart: each path leads to one of its defaults, as far as that is a map with keys. */
function isWithin(values: unknown, chart: unknown): boolean {
  if (!isMap(values) || !isMap(chart) || Object.keys(chart).length === 0) {
    return !isMap(chart) || isMap(values);
  }
  return Object.entries(values).every(([key, value]) => key in chart && isWithin(value, chart[key]));
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A list as --set takes it. */
const listOf = (value: string) => /^\{([^:]*)\}$/.exec(value)?.[1]?.split(',');

/** Every set of values that a text names: YAML blocks, `--set`, and `path: value` within a sentence. */
function valuesIn(text: string): unknown[] {
  const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, block = '']) => parseAllDocuments(block));
  const single = [...text.matchAll(/(?:--set(?:-string)? '?|`)(\w+(?:\.\w+)+)(?:=|: )([^`'\s]+)/g)].map(
    ([, path = '', value = '']) =>
      path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), listOf(value) ?? value),
  );
  return [...blocks.flatMap((block) => (block.errors.length > 0 ? [] : [block.toJS() as unknown])), ...single];
}

/** The sets of values on all pages, each with every chart that has them. */
function documentedValues() {
  const takers = charts.filter((chart) => chart !== hubArgoCdChart);
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  const files = [...pages.map((name) => join(root, 'docs', name)), ...takers.map((chart) => join(chart, 'README.md'))];
  const found = files.flatMap((file) =>
    valuesIn(readFileSync(file, 'utf8'))
      .filter((values) => isMap(values) && Object.keys(values).length > 0)
      .flatMap((values) =>
        takers.flatMap((chart) => (isWithin(values, defaults.get(chart)) ? [{ chart, values }] : [])),
      ),
  );
  return [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
}

const documented = documentedValues();

describe('two renderings are equal', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'values-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(charts)('with the default values of %s', (chart) => expectEqual(chart));

  it('found the values of the pages', () => {
    expect(documented.length).toBeGreaterThan(20);
    expect(new Set(documented.map(({ chart }) => chart)).size).toBeGreaterThanOrEqual(3);
  });

  it.each(documented.map(({ chart, values }) => [basename(chart), JSON.stringify(values), chart] as const))(
    'of %s with %s',
    async (_, values, chart) => {
      const file = join(folder, 'values.yaml');
      // A value is written as in YAML or after --set, where all of it is text here.
      writeFileSync(file, values.replaceAll(/"(true|false|\d+)"/g, '$1'));
      // Where the pages name it, they say that this goes with it.
      const isDirect = values.includes('redisProxy') ? ['--set', 'hubArgoCD.serverRedisAddress=argocd-redis:6379'] : [];
      await expectEqual(chart, '--values', file, ...(chart === addonChart ? isDirect : []));
    },
  );

  it('with one of the two secrets of the basic model', async () => {
    await expectEqual(pullChart, '--set', 'argocd.redisPassword=x');
    await expectEqual(pullChart, '--set', 'argocd.serverSecretKey=x');
  });
});

describe('what a rendering cannot look up', () => {
  it('has to be said: whether the hub has an Argo CD', async () => {
    const sentence =
      'hubArgoCD.install is auto, and this rendering cannot look at the hub: set hubArgoCD.install to "true" if the hub has no Argo CD, or has that of this chart, or to "false" if it has another one';
    await expect(template(addonChart)).rejects.toThrow(sentence);
    await expect(template(hubArgoCdChart, '--set', 'install=auto')).rejects.toThrow(sentence);
  });

  it.each(['true', 'false'])(
    'has to be said: whether the hub has a principal, with hubArgoCD.install=%s',
    async (install) => {
      await expect(template(addonChart, '--set', `hubArgoCD.install=${install}`)).rejects.toThrow(
        'principal.enabled is auto, and this rendering cannot look at the hub: set principal.enabled to "true" if the hub has no principal, or has that of this chart, or to "false" if it has another one',
      );
    },
  );

  it('is not said by a null, which stands for the default', async () => {
    const other = { 'hubArgoCD.install': 'principal.enabled=true', 'principal.enabled': 'hubArgoCD.install=false' };
    for (const [value, set] of Object.entries(other)) {
      await expect(template(addonChart, '--set', `${set},${value}=null`)).rejects.toThrow(`${value} is auto, and`);
    }
    expect(await template(hubArgoCdChart, '--set', 'install=null')).toContain('name: argocd-server\n');
  });

  it('is said by words as by truth values', async () => {
    const text = (enabled: string, ...how: string[]) =>
      template(addonChart, '--set', 'hubArgoCD.install=false', ...how, `principal.enabled=${enabled}`);
    for (const how of ['--set', '--set-string']) {
      expect(await text('true', how), how).toContain('kind: Deployment\nmetadata:\n  name: argocd-agent-principal\n');
      expect(await text('false', how), how).not.toContain(
        'kind: Deployment\nmetadata:\n  name: argocd-agent-principal\n',
      );
    }
  });
});
