import type { CertificateTerm, ShownState } from '../model/cluster-facts.ts';
import { html, type SafeHtml } from './html.ts';

/** What the states are called. */
export const stateWords: Readonly<Record<ShownState, string>> = {
  refused: 'Refused',
  lost: 'Lost',
  attention: 'Needs attention',
  waiting: 'Not connected yet',
  ready: 'Ready',
};

/** What the terms of certificates are called. */
export const termWords: Readonly<Record<CertificateTerm, string>> = {
  expired: 'Expired',
  overdue: 'Not renewed in time',
  week: 'Within 7 days',
  month: 'Within 30 days',
  later: 'Later',
  unknown: 'Not seen yet',
};

/** A number as people read it. */
export function numeral(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** A number and its noun. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${numeral(value)} ${value === 1 ? one : many}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A time in UTC, to the minute. */
export function moment(time: Date): SafeHtml {
  const iso = time.toISOString();
  const text = `${time.getUTCDate()} ${months[time.getUTCMonth()]} ${iso.slice(11, 16)}`;
  return html`<time datetime="${iso}" title="${iso.slice(0, 19).replace('T', ' ')} UTC">${text}</time>`;
}

/** The picture of a state, with its name for those who do not see it. */
export function glyph(state: ShownState, label = stateWords[state]): SafeHtml {
  return html`<svg class="glyph" role="img" aria-label="${label}"><use href="#g-${state}"></use></svg>`;
}

/** The same beside its name. */
export function silentGlyph(state: ShownState): SafeHtml {
  return html`<svg class="glyph" aria-hidden="true"><use href="#g-${state}"></use></svg>`;
}
