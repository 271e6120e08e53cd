/** HTML that was made here, with every text in it escaped. */
export class SafeHtml {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** What can stand in a template: texts are escaped, nothing is shown for undefined and false. */
export type HtmlPart = SafeHtml | string | number | undefined | false | readonly HtmlPart[];

/** Makes HTML of a template. Values may stand in texts and in quoted attributes only. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlPart[]): SafeHtml {
  return new SafeHtml(strings.reduce((made, text, index) => made + partOf(values[index - 1]) + text));
}

function partOf(value: HtmlPart): string {
  if (value === undefined || value === false) {
    return '';
  }
  if (value instanceof SafeHtml) {
    return value.text;
  }
  return typeof value === 'object' ? value.map(partOf).join('') : escapeHtml(String(value));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/**
 * A text of peers and objects as HTML shows it: markup is escaped, and characters that steer (control characters, line
 * separators, changes of the writing direction, lone surrogates, tags) are shown as U+FFFD. Joiners stay: emoji and scripts
 * need them. Of marks on one character four stay: more reach into other lines.
 */
export function escapeHtml(text: string): string {
  return text
    .toWellFormed()
    .replace(
      /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu,
      '\ufffd',
    )
    .replace(/(\p{M}{4})\p{M}+/gu, '$1')
    .replace(/[&<>"'`]/g, (character) => entities[character] ?? '');
}

/** The text, or its beginning and an ellipsis. */
export function abridged(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
