import type { Plot, Tone } from './plots.ts';

const fills: Record<Tone, string> = { own: '#2563eb', floor: '#9ca3af', other: '#d97706' };
const [width, labelWidth, valueWidth, rowHeight, top] = [760, 300, 90, 24, 30];

/** A text for XML. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** A figure with three digits. */
export const figure = (value: number) => (value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3))));

/** A plot as a picture that stands alone: it brings its background, so that it can be read in a dark page too. */
export function svgOf({ title, unit, bars }: Plot): string {
  const most = Math.max(...bars.map(({ value, more = 0 }) => Math.max(value, more))) || 1;
  const room = width - labelWidth - valueWidth;
  const length = (value: number) => Math.max(1, (room * value) / most).toFixed(1);
  const height = top + bars.length * rowHeight + 6;
  const rows = bars.map(({ label, tone, value, more }, index) => {
    const y = top + index * rowHeight;
    const bar = (size: number, opacity: number) =>
      `<rect x="${labelWidth}" y="${y}" width="${length(size)}" height="${rowHeight - 8}" fill="${fills[tone]}" opacity="${opacity}"/>`;
    const text = more === undefined ? figure(value) : `${figure(value)}; ${figure(more)}`;
    const end = labelWidth + Number(length(Math.max(value, more ?? 0))) + 6;
    return [
      `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${escaped(label)}</text>`,
      more === undefined ? '' : bar(more, 0.3),
      bar(value, 1),
      `<text x="${end}" y="${y + 12}">${text} ${escaped(unit)}</text>`,
    ].join('');
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="sans-serif" font-size="12">
<title>${escaped(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>
<text x="8" y="18" font-weight="bold">${escaped(title)}</text>
${rows.join('\n')}
</svg>`;
}
