import { GoExpression } from '../lib/auth/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { isAlreadyExists, type KubeClient, namespaces } from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';

/** Which namespaces the principal may create, and what they are labelled with. */
export interface NamespaceCreation {
  readonly pattern: GoExpression | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * What `--namespace-create-enable`, `-pattern` and `-labels` say; undefined when nothing is created.
 * @throws FatalError for an expression that does not compile or a label that is not key=value
 */
export function namespaceCreation(flags: {
  readonly 'namespace-create-enable': boolean;
  readonly 'namespace-create-pattern': string;
  readonly 'namespace-create-labels': readonly string[];
}): NamespaceCreation | undefined {
  const labels = labelsOf(flags['namespace-create-labels']);
  const pattern = patternOf(flags['namespace-create-pattern']);
  return flags['namespace-create-enable'] ? { pattern, labels } : undefined;
}

function patternOf(source: string): GoExpression | undefined {
  if (source === '') {
    return undefined;
  }
  try {
    return new GoExpression(source);
  } catch (error) {
    throw new FatalError(
      `--namespace-create-pattern (ARGOCD_PRINCIPAL_NAMESPACE_CREATE_PATTERN) is no regular expression: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function labelsOf(entries: readonly string[]): Record<string, string> {
  if (entries.length === 1 && entries[0] === '') {
    return {};
  }
  return Object.fromEntries(
    entries.map((entry) => {
      const [, key, value] = /^([^=]+)=(.+)$/.exec(entry.trim()) ?? [];
      if (key !== undefined && value !== undefined) {
        return [key, value];
      }
      throw new FatalError(
        `--namespace-create-labels (ARGOCD_PRINCIPAL_NAMESPACE_CREATE_LABELS): ${JSON.stringify(entry)} is not key=value`,
      );
    }),
  );
}

/**
 * Creates the namespace of an autonomous agent's Applications if it is missing and may be created. One that exists is left
 * as it is.
 * @returns undefined when nothing is ever created
 * @throws Error when the pattern does not allow it, or the API server refuses
 */
export function namespaceCreator(
  client: Pick<KubeClient, 'get' | 'create'>,
  creation: NamespaceCreation | undefined,
  logger: Logger,
): ((name: string, signal: AbortSignal) => Promise<void>) | undefined {
  if (creation === undefined) {
    return undefined;
  }
  const { pattern, labels } = creation;
  return async (name, signal) => {
    if ((await client.get(namespaces, { name }, signal)) !== undefined) {
      return;
    }
    if (pattern !== undefined && !pattern.matches(name)) {
      throw new Error(`--namespace-create-pattern ${pattern.source} does not allow it`);
    }
    const metadata = Object.keys(labels).length === 0 ? { name } : { name, labels };
    try {
      await client.create(namespaces, { metadata }, { fieldManager: 'argocd-agent-principal', signal });
      logger.info({ namespace: name }, "namespace created for an agent's Applications");
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  };
}
