import { type HtmlPart, html, type SafeHtml } from './html.ts';
import { numeral } from './words.ts';

/** A part of a bar: its share, a class for its colour, and its name. */
export interface BarPart {
  readonly kind: string;
  readonly name: string;
  readonly count: number;
}

/** A bar whose parts show their shares. Its figures are beside it in words: the picture is for the eye alone. */
export function shareBar(parts: readonly BarPart[]): SafeHtml {
  const total = parts.reduce((sum, { count }) => sum + count, 0);
  let from = 0;
  const drawn = parts.flatMap(({ kind, count }) => {
    if (count === 0) {
      return [];
    }
    const width = (100 * count) / total;
    const [x, gap] = [from, 0.15];
    from += width;
    return [
      html`<rect class="fill-${kind}" x="${x.toFixed(2)}%" width="${Math.max(0.3, width - gap).toFixed(2)}%" height="100%"></rect>`,
    ];
  });
  return html`<svg class="share" aria-hidden="true">${drawn}</svg>`;
}

/** Names with their numbers, and a bar for each. */
export function rankedBars(rows: readonly { name: HtmlPart; count: number; kind: string }[]): SafeHtml {
  const most = Math.max(1, ...rows.map(({ count }) => count));
  return html`<ul class="ranks">${rows.map(
    ({
      name,
      count,
      kind,
    }) => html`<li><span class="rank-name">${name}</span><span class="rank-count">${numeral(count)}</span>
<svg class="rank-bar" aria-hidden="true"><rect class="fill-${kind}" width="${((100 * count) / most).toFixed(1)}%" height="100%" rx="2"></rect></svg></li>`,
  )}</ul>`;
}

const [width, height] = [240, 48];

/** A figure of the last hour as a line, with what it was and is in words. */
export function timeline(options: { name: string; unit: string; values: readonly number[]; kind: string }): SafeHtml {
  const { name, unit, values, kind } = options;
  const most = Math.max(0, ...values);
  const latest = values.at(-1) ?? 0;
  const show = (value: number) => (value < 10 && !Number.isInteger(value) ? value.toFixed(1) : numeral(value));
  const scale = most === 0 ? 1 : most;
  const points = values.map((value, index) => {
    const x = width - (values.length - 1 - index);
    return `${x},${(height - 2 - ((height - 6) * value) / scale).toFixed(1)}`;
  });
  const first = width - Math.max(0, values.length - 1);
  const drawn =
    values.length < 2
      ? undefined
      : html`<polygon class="area-${kind}" points="${first},${height} ${points.join(' ')} ${width},${height}"></polygon>
<polyline class="line-${kind}" points="${points.join(' ')}"></polyline>`;
  return html`<figure class="timeline"><figcaption><span>${name}</span><b>${show(latest)} <small>${unit}</small></b></figcaption>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${name} in the last hour: at most ${show(most)}, now ${show(latest)} ${unit}"><path class="base" d="M0 ${height - 1}h${width}"></path>${drawn}</svg>
<p class="scale"><span>1 h ago</span><span>at most ${show(most)}</span><span>now</span></p></figure>`;
}
