import { z } from 'zod';
import { wellKnown } from '../base/index.ts';
import type { AppProject } from './application.ts';
import { absent, type Metadata, objectMeta, strings, withoutUndefined } from './object.ts';
import { isSkipped } from './routing.ts';

/** The fields of a Secret that the rules about repositories read. Its data is base64, and never goes into a log. */
export interface RepositorySecret {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
  data?: Record<string, string>;
  type?: string;
  [other: string]: unknown;
}

/** Parses a Secret that came from outside; unknown fields are preserved. */
export const secretSchema = withoutUndefined<RepositorySecret>(
  z.looseObject({ metadata: objectMeta, data: absent(strings), type: absent(z.string()) }),
);

const repositoryTypes: ReadonlySet<string | undefined> = new Set(['repository', 'repo-creds']);

/** Whether Argo CD takes a Secret for a repository or for credentials of repositories. */
export function isRepository(secret: RepositorySecret): boolean {
  return repositoryTypes.has(secret.metadata.labels?.[wellKnown.secretTypeLabel]);
}

/** A field of a repository Secret as text; empty when it is absent. */
export function fieldOf({ data }: Pick<RepositorySecret, 'data'>, name: string): string {
  return Buffer.from(data?.[name] ?? '', 'base64').toString('utf8');
}

/** The AppProject that a repository Secret is restricted to; undefined when it is for all projects. */
export function projectOfRepository(secret: Pick<RepositorySecret, 'data'>): string | undefined {
  return fieldOf(secret, 'project') || undefined;
}

/**
 * Whether a managed agent gets a Secret: one of a repository that belongs to an AppProject which the agent gets, as in
 * argocd-agent. Secrets without a project stay on the hub. Argo CD's untouched `default` project shares its Applications
 * with every agent, but not credentials.
 * @param project the hub's own AppProject of the name that the Secret says; undefined when there is none
 * @param isFor whether the agent gets a project of the hub
 */
export function isRepositoryForAgent(
  secret: RepositorySecret,
  project: AppProject | undefined,
  isFor: (project: AppProject) => boolean,
): boolean {
  return (
    isRepository(secret) &&
    !isSkipped(secret) &&
    project !== undefined &&
    project.metadata.name === projectOfRepository(secret) &&
    isFor(project)
  );
}
