import { escapedSteering, FatalError, oneOf, printable, printYaml, stringFlag } from '../lib/ops/index.ts';

/** A value that is printed: texts, numbers, times, lists and objects of them. Undefined fields are left out. */
export type Printed =
  | string
  | number
  | boolean
  | Date
  | undefined
  | readonly Printed[]
  | { readonly [key: string]: Printed };

/** An object that is printed. */
export type PrintedObject = { readonly [key: string]: Printed };

/**
 * An object in a format: `json`, `yaml` or, with a label for each of its keys, `text`.
 * @throws FatalError for other formats
 */
export function formatted(value: PrintedObject, format: string, labels: Readonly<Record<string, string>> = {}): string {
  switch (format.toLowerCase()) {
    case 'json':
      return jsonText(value, 1);
    case 'yaml':
      return printYaml(plain(value));
    case 'text': {
      const rows = Object.entries(labels).map(([key, label]) => [`${label}:`, goText(value[key])]);
      return textTable(rows);
    }
    default:
      throw new FatalError(`unknown output format: ${format}`);
  }
}

/** `--output` of a command that prints text for people, unless it is asked for `json`, `yaml` or one of `others`. */
export function outputFlag(...others: readonly string[]) {
  const formats = ['text', ...others, 'json', 'yaml'];
  const usage = `format: ${formats.slice(0, -1).join(', ')} or ${formats.at(-1)}`;
  return stringFlag({ usage, default: 'text', short: 'o', check: oneOf(...formats) });
}

/** A value in a format of {@link outputFlag}; `text` makes any that is neither JSON nor YAML. */
export function inFormat(value: Printed, format: string, text: () => string): string {
  switch (format) {
    case 'json':
      return jsonText(value, 2);
    case 'yaml':
      return printYaml(plain(value));
    default:
      return text();
  }
}

/** JSON as the original prints it, with the escapes of Go, and with escapes of what would steer the terminal. */
export function jsonText(value: Printed, indent: number): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `${escapedSteering(JSON.stringify(plain(value), undefined, indent)).replace(/[<>&]/g, escaped)}\n`;
}

/** Rows with aligned columns, two blanks between them. Nothing in them steers the terminal. */
export function textTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = cells.reduce<number[]>(
    (known, row) => row.map((cell, index) => Math.max(known[index] ?? 0, cell.length)),
    [],
  );
  return cells
    .map((row) =>
      row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd((widths[index] ?? 0) + 2))).join(''),
    )
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** A time without fractions of a second, as Go prints it in JSON. */
export function rfcTime(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A time as in mails, with the zone as a number: RFC 1123. */
export function mailTime(time: Date): string {
  return time.toUTCString().replace('GMT', '+0000');
}

/** What printers of JSON and YAML take. */
function plain(value: Printed): unknown {
  if (value instanceof Date) {
    return rfcTime(value);
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (typeof value === 'object') {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    return Object.fromEntries(entries.map(([key, each]) => [key, plain(each as Printed)]));
  }
  return value;
}

/** A value as Go prints it with `%v`. */
function goText(value: Printed): string {
  if (value instanceof Date) {
    return `${rfcTime(value).replace('T', ' ').replace('Z', '')} +0000 UTC`;
  }
  if (Array.isArray(value)) {
    return `[${value.map(goText).join(' ')}]`;
  }
  if (typeof value === 'object') {
    return `{${Object.values(value).map(goText).join(' ')}}`;
  }
  return value === undefined ? '[]' : String(value);
}
