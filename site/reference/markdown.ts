/** The line that tells a reader of a generated page where to change it. */
export const generated = '<!-- Made by `npm run reference` from the code. Change the texts there. -->';

/** A text as one cell of a Markdown table: one line, with what Markdown and Vue would read as theirs escaped. */
export function cell(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;')
    .replaceAll('{{', '&#123;&#123;')
    .trim();
}
