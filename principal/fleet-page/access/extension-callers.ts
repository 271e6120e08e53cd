import { createHash, timingSafeEqual } from 'node:crypto';

/** The fields of Secret `argocd-secret` with the keys by which Argo CD's server shows which of the extensions it forwards for. */
export const extensionKeys = {
  application: 'fleet-page.extension.application',
  clusters: 'fleet-page.extension.clusters',
} as const;

/** A request that Argo CD's server forwards for its UI extension. */
export interface ExtensionCaller {
  /** Which one: that about one Application, or that about all clusters. Argo CD has checked the right to invoke it. */
  readonly extension: keyof typeof extensionKeys;
  /** An Application that, as Argo CD has checked, the one who asks may get. */
  readonly application: { readonly project: string; readonly namespace: string; readonly name: string };
  /** Who asks, for the number of streams alone: Argo CD forwards what a user without identity or groups writes there. */
  readonly user: string;
}

/** Headers of requests that Argo CD's server forwards (`server/extension/extension.go`), and the key that it adds. */
export type ExtensionHeader = 'x-fleet-page-key' | 'argocd-application-name' | 'argocd-project-name' | 'argocd-user-id';

const shortestKey = 32;
const longestKey = 256;
const namePattern = /^[a-z0-9][a-z0-9.-]{0,252}$/;

/** The caller of a request; undefined unless it has a key of `argocd-secret`, which only Argo CD's server knows. */
export function extensionCaller(
  header: (name: ExtensionHeader) => string | undefined,
  secrets: Readonly<Record<string, string>>,
): ExtensionCaller | undefined {
  const given = header('x-fleet-page-key') ?? '';
  if (given.length < shortestKey || given.length > longestKey) {
    return undefined;
  }
  const names = Object.keys(extensionKeys) as (keyof typeof extensionKeys)[];
  const extension = names.find((name) => isSame(secrets[extensionKeys[name]] ?? '', given));
  const [namespace = '', name = '', ...more] = (header('argocd-application-name') ?? '').split(':');
  const project = header('argocd-project-name') ?? '';
  return extension === undefined ||
    more.length > 0 ||
    ![namespace, name, project].every((text) => namePattern.test(text))
    ? undefined
    : { extension, application: { project, namespace, name }, user: (header('argocd-user-id') ?? '').slice(0, 256) };
}

function isSame(known: string, given: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(known), digest(given));
}
