import { wellKnown } from '../base/index.ts';
import type { ApplicationSpec } from './application.ts';
import { fieldOf, type RepositorySecret } from './repository.ts';

/** What tells whether Argo CD uses a Secret for a repository. */
export type RepositoryFields = Pick<RepositorySecret, 'data'> & {
  readonly metadata: { readonly labels?: Record<string, string> };
};

/** Addresses of the repositories that an Application has its sources in. */
export function repositoryUrls({ source, sources }: ApplicationSpec): string[] {
  const all = [source, ...(Array.isArray(sources) ? sources : [])] as ({ repoURL?: unknown } | null | undefined)[];
  const urls = all.map((one) => one?.repoURL).filter((url) => typeof url === 'string' && url !== '');
  return [...new Set(urls)] as string[];
}

/** Whether a Secret is that of the repository with this address, or of credentials for addresses that begin like it. */
export function isForRepository(secret: RepositoryFields, url: string): boolean {
  const own = normal(fieldOf(secret, 'url'));
  const isTemplate = secret.metadata.labels?.[wellKnown.secretTypeLabel] === 'repo-creds';
  return own !== '' && (isTemplate ? normal(url).startsWith(own) : normal(url) === own);
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

function normal(url: string): string {
  return url
    .toLowerCase()
    .replace(/\/+$/, '')
    .replace(/\.git$/, '');
}
