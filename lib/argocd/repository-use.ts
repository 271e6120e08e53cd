import { wellKnown } from '../base/index.ts';
import type { ApplicationSpec } from './application.ts';
import { fieldOf, type RepositorySecret } from './repository.ts';

/** What tells whether Argo CD uses a Secret for a repository. */
export type RepositoryFields = Pick<RepositorySecret, 'data'> & {
  readonly metadata: { readonly labels?: Record<string, string> };
};

/** Addresses of the repositories that an Application has its sources in. */
export function repositoryUrls({ source, sources, sourceHydrator }: ApplicationSpec): string[] {
  type Source = { readonly repoURL?: unknown } | null | undefined;
  const dry = (sourceHydrator as { readonly drySource?: Source } | null | undefined)?.drySource;
  const all = [source, ...(Array.isArray(sources) ? sources : []), dry] as Source[];
  const urls = all.map((one) => one?.repoURL).filter((url) => typeof url === 'string' && url !== '');
  return [...new Set(urls)] as string[];
}

/** Whether a Secret is that of the repository with this address, or of credentials for addresses that begin like it. */
export function isForRepository(secret: RepositoryFields, url: string): boolean {
  const own = normalRepositoryUrl(fieldOf(secret, 'url'));
  const isTemplate = secret.metadata.labels?.[wellKnown.secretTypeLabel] === 'repo-creds';
  return own !== '' && (isTemplate ? normalRepositoryUrl(url).startsWith(own) : normalRepositoryUrl(url) === own);
}

const credentialFields = [
  'password',
  'bearerToken',
  'sshPrivateKey',
  'tlsClientCertKey',
  'githubAppPrivateKey',
  'gcpServiceAccountKey',
];

/** Whether the Secret of a repository has credentials. Public repositories may have a Secret without. */
export function hasCredentials(secret: RepositoryFields): boolean {
  return credentialFields.some((name) => fieldOf(secret, name) !== '');
}

/** An address as Argo CD compares it (`NormalizeGitURL`). */
export function normalRepositoryUrl(url: string): string {
  const text = url.trim().toLowerCase();
  const rest = text.replace(/^ssh:\/\//, '');
  const at = rest.lastIndexOf('@');
  const isShort = rest === text && at >= 0 && at < text.length - 1 && !/[/:]/.test(text.slice(0, at));
  return (isShort ? text.replace(':', '/') : rest).replace(/\.git$/, '');
}
