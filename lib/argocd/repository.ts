import { z } from 'zod';
import { isProjectForAgent, type Mapping } from './app-project-rules.ts';
import type { AppProject } from './application.ts';
import { absent, type ObjectMeta, objectMeta, strings, withoutUndefined } from './object.ts';
import { isSkipped } from './routing.ts';

/** A Kubernetes Secret. Its data is base64, and never goes into a log. */
export interface Secret {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  data?: Record<string, string>;
  type?: string;
  [other: string]: unknown;
}

/** Parses a Secret that came from outside; unknown fields are preserved. */
export const secretSchema = withoutUndefined<Secret>(
  z.looseObject({ metadata: objectMeta, data: absent(strings), type: absent(z.string()) }),
);

/** Argo CD's label that says what a Secret is for. */
export const secretTypeLabel = 'argocd.argoproj.io/secret-type';

const repositoryTypes: ReadonlySet<string | undefined> = new Set(['repository', 'repo-creds']);

/** Whether Argo CD takes a Secret for a repository or for credentials of repositories. */
export function isRepository(secret: Secret): boolean {
  return repositoryTypes.has(secret.metadata.labels?.[secretTypeLabel]);
}

/** The AppProject that a repository Secret is restricted to; undefined when it is for all projects. */
export function projectOfRepository({ data }: Secret): string | undefined {
  const project = Buffer.from(data?.project ?? '', 'base64').toString('utf8');
  return project === '' ? undefined : project;
}

/**
 * Whether a managed agent gets a Secret: one of a repository that belongs to an AppProject which the agent gets, as in
 * argocd-agent. Secrets without a project stay on the hub. Argo CD's untouched `default` project shares its Applications
 * with every agent, but not credentials.
 * @param project the hub's own AppProject of the name that the Secret says; undefined when there is none
 */
export function isRepositoryForAgent(
  secret: Secret,
  project: AppProject | undefined,
  agent: string,
  mapping: Mapping,
): boolean {
  return (
    isRepository(secret) &&
    !isSkipped(secret) &&
    project !== undefined &&
    project.metadata.name === projectOfRepository(secret) &&
    isProjectForAgent(project, agent, mapping)
  );
}
