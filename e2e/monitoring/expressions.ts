import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** An alert of a file of rules. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The alerts of a file of rules. */
export function alertsIn(file: string): AlertRule[] {
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: AlertRule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** The expressions of a file of rules, or of a dashboard. */
export function expressionsOf(file: string): string[] {
  if (file.endsWith('.yaml')) {
    return alertsIn(file).map(({ expr }) => expr);
  }
  const { panels, templating } = JSON.parse(readFileSync(file, 'utf8')) as {
    panels: { targets: { expr: string }[] }[];
    templating: { list: { type: string; query: string }[] };
  };
  const variables = templating.list.filter(({ type }) => type === 'query').map(({ query }) => query);
  return [...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), ...variables];
}

/** The names of the metrics in a PromQL expression; every metric has an underscore in its name. */
export function metricsOf(expression: string): string[] {
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '')
    .replace(/^label_values\(([^,]*),.*$/, '$1');
  return Array.from(bare.matchAll(/\b[a-z]\w*_\w*\b(?!\s*\()/g), ([name]) => name);
}
