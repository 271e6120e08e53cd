import { type HtmlPart, html, type SafeHtml } from './html.ts';

/** What all pages have. */
export interface PageFrame {
  readonly title: string;
  /** Where links lead from: empty on the first page, `../` on those below it. */
  readonly root: string;
  /** Who looks at it; undefined before they have said. */
  readonly viewer: string | undefined;
  /** Path of the stream of changes, relative to the page; undefined without one. */
  readonly events: string | undefined;
  readonly assets: { readonly style: string; readonly script: string };
  readonly main: HtmlPart;
}

/** A whole page. It has no style and no script in it, so that the browser needs to permit none. */
export function page({ title, root, viewer, events, assets, main }: PageFrame): SafeHtml {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="${root}assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}assets/fleet.css?${assets.style}">
<script type="module" src="${root}assets/fleet.js?${assets.script}"></script>
</head>
<body data-events="${events ?? ''}">
${symbols}
<a class="skip" href="#main">Skip to the content</a>
<header class="mast">
<a class="brand" href="${root === '' ? './' : root}"><svg class="mark" aria-hidden="true"><use href="#g-mark"></use></svg>Fleet</a>
${
  viewer !== undefined &&
  html`<p class="live" id="live" data-live="still"><span class="dot" aria-hidden="true"></span><span id="live-text">As of ${new Date().toISOString().slice(11, 19)} UTC</span></p>
<p class="who"><span class="vh">Signed in as </span><bdi>${viewer}</bdi></p>`
}
</header>
<main id="main" tabindex="-1">${main}</main>
<p class="vh" id="news" role="status" aria-live="polite"></p>
</body>
</html>
`;
}

/** Pictures of the states: each has a shape of its own, so that nobody has to tell colours apart. */
const symbols = html`<svg class="symbols" aria-hidden="true" focusable="false"><defs>
<symbol id="g-ready" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7"></circle><path class="cut" d="M4.6 8.2l2.4 2.4 4.4-5"></path></symbol>
<symbol id="g-attention" viewBox="0 0 16 16"><path d="M8 .6 15.4 8 8 15.4.6 8z"></path><path class="cut" d="M8 4.4v4.2M8 10.9v.9"></path></symbol>
<symbol id="g-lost" viewBox="0 0 16 16"><rect x="1" y="1" width="14" height="14" rx="2"></rect><path class="cut" d="M5 5l6 6M11 5l-6 6"></path></symbol>
<symbol id="g-refused" viewBox="0 0 16 16"><path d="M5 .8h6L15.200 5v6L11 15.200H5L.8 11V5z"></path><path class="cut" d="M4.200 8h7.600"></path></symbol>
<symbol id="g-waiting" viewBox="0 0 16 16"><circle class="ring" cx="8" cy="8" r="6"></circle></symbol>
<symbol id="g-mark" viewBox="0 0 24 24"><path class="pole" d="M5 2v20"></path><path d="M6.500 3.500 21 8.500 6.500 13.500z"></path></symbol>
</defs></svg>`;
