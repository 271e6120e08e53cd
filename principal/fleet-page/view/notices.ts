import { html, type SafeHtml } from './html.ts';

/** What somebody sees who has not proved who they are. */
export function signInNotice(loginUrl: string | undefined): SafeHtml {
  return html`<div class="notice"><h1>Please sign in</h1>
<p class="sub">This page is for people who may see the clusters of Argo CD.</p>
${loginUrl === undefined ? html`<p>Log in to Argo CD, and come back.</p>` : html`<p><a class="button" href="${loginUrl}" rel="noreferrer">Log in to Argo CD</a></p><p>Then come back and load this page again.</p>`}
<p class="hint">Your browser sends Argo CD's session only to the host name of Argo CD: this page has to be reached under the same one. Programs send a token of Argo CD as <code>Authorization: Bearer …</code>. Whoever logs in to Argo CD through an identity provider needs an authenticating proxy before this page.</p></div>`;
}

/** What somebody sees who may not see any cluster. */
export function forbiddenNotice(viewer: string): SafeHtml {
  return html`<div class="notice"><h1>No cluster for you</h1>
<p class="sub">You are signed in as <bdi>${viewer}</bdi>, and Argo CD's policy lets you see no cluster.</p>
<p class="hint">Whoever keeps ConfigMap <code>argocd-rbac-cm</code> can give you a role with the line <code>p, role:fleet, clusters, get, *, allow</code>.</p></div>`;
}

/** What somebody sees who asks for what is not there, or not for them. */
export function notFoundNotice(root: string): SafeHtml {
  return html`<div class="notice"><h1>Not here</h1><p class="sub">There is no such page, or it is not for you.</p><p><a class="button" href="${root === '' ? './' : root}">The fleet</a></p></div>`;
}
