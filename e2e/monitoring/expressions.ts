import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';

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

/** What a panel of a dashboard asks for. */
export interface PanelQuery {
  readonly expr: string;
  /** The text of a series, with its labels in double braces. */
  readonly legendFormat: string;
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly PanelQuery[] }[];
  readonly templating: { readonly list: readonly { readonly type: string; readonly query: string }[] };
}

const dashboardIn = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Dashboard;

/** What the panels of a dashboard ask for. */
export function panelQueriesOf(file: string): PanelQuery[] {
  return dashboardIn(file).panels.flatMap(({ targets }) => targets);
}

/** The expressions of a file of rules, or of a dashboard. */
export function expressionsOf(file: string): string[] {
  if (file.endsWith('.yaml')) {
    return alertsIn(file).map(({ expr }) => expr);
  }
  const variables = dashboardIn(file).templating.list.filter(({ type }) => type === 'query');
  return [...panelQueriesOf(file).map(({ expr }) => expr), ...variables.map(({ query }) => query)];
}

/** The text of a file of rules, whose alerts are raised after a second instead of minutes. */
export function hastyRules(file: string): string {
  const rules = alertsIn(file).map((rule) => ({ ...rule, for: '1s' }));
  return stringify({ groups: [{ name: 'hasty', rules }] });
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
