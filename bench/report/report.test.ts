import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latencies } from '../figures.ts';
import { table } from '../table.ts';
import { benchSubjects } from './main.ts';
import { reportOf } from './page.ts';
import { plotsOf } from './plots.ts';
import { readPrinted } from './printed.ts';
import { svgOf } from './svg.ts';

/** What a bench prints; the figures are made up. */
const sample = (name: string) => readFileSync(join(import.meta.dirname, 'samples', `${name}.txt`), 'utf8');
const setting = { date: '2026-01-01', machine: '2 × processor' };
const rulesOf = (name: string) => ({ columns: benchSubjects[name]?.columns ?? {} });

test('what latencies() and table() print is read again', () => {
  const rows = [
    ['one', '1.00 s', '2'],
    ['a longer one', '12.50 s', '3'],
  ];
  const text = `Words …\n${latencies('a change, product', [1, 2, 3])}\n${table(['what', 'time', 'count'], rows)}\n words\n`;
  expect(readPrinted(text)).toEqual({
    latencies: [{ what: 'a change, product', p50: 2, p99: 3 }],
    rounds: [],
    tables: [{ heading: ['what', 'time', 'count'], rows }],
  });
});

test('the figures of a run stand beside their floors', () => {
  const plots = plotsOf([{ tone: 'own', printed: readPrinted(sample('propagation')) }], {});
  expect(plots.map(({ title, unit, bars }) => [title, unit, bars.map(({ tone, value }) => [tone, value])])).toEqual([
    [
      'spec: hub to managed cluster (p50; faint: p99)',
      'ms',
      [
        ['own', 12.1],
        ['floor', 8],
      ],
    ],
    [
      'status: managed cluster to hub (p50; faint: p99)',
      'ms',
      [
        ['own', 13.3],
        ['floor', 8.4],
      ],
    ],
    [
      'burst (median)',
      's',
      [
        ['own', 0.33],
        ['floor', 0.28],
      ],
    ],
  ]);
});

test('columns of tables become plots, of two implementations in one picture', () => {
  const printed = readPrinted(sample('connect'));
  const both = [
    { tone: 'own' as const, printed },
    { tone: 'other' as const, printed },
  ];
  const memory = plotsOf(both, rulesOf('connect')).find(({ title }) => title === 'peak memory of the principal');
  expect(memory?.bars.map(({ label, tone, value }) => [label, tone, value])).toEqual([
    ['new, have nothing, this project', 'own', 161],
    ['come back, principal restarted, this project', 'own', 148],
    ['new, have nothing, the other', 'other', 161],
    ['come back, principal restarted, the other', 'other', 148],
  ]);
});

test('the page has everything, and nothing that is printed becomes markup', () => {
  const own = `${sample('propagation')}\n<script>x</script>`;
  const bench = { name: 'propagation', summary: 'Delay', command: 'npm run bench', own, other: own };
  const { html, markdown, pictures } = reportOf([bench], { ...setting, other: 'principal <b>' });
  expect(html).toContain('&lt;script&gt;');
  expect(html).not.toMatch(/<script|<b>/);
  expect(html.match(/<svg /g)).toHaveLength(3);
  expect([...pictures.keys()]).toEqual(['propagation-1.svg', 'propagation-2.svg', 'propagation-3.svg']);
  expect(markdown).toContain('![spec: hub to managed cluster (p50; faint: p99)](propagation-1.svg)');
  expect(markdown).toContain('| floor, in the run of the other | 8 ms | 14.2 ms |');
});

test('bars have the lengths of their figures', () => {
  const svg = svgOf({
    title: 'a & b',
    unit: 'ms',
    bars: [
      { label: 'one', tone: 'own', value: 50 },
      { label: 'two', tone: 'floor', value: 100 },
    ],
  });
  const [first = 0, second = 0] = [...svg.matchAll(/width="([\d.]+)" height="16"/g)].map(([, width]) => Number(width));
  expect(second / first).toBeCloseTo(2, 1);
  expect(svg).toContain('a &amp; b');
});
