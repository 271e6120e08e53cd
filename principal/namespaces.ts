import { GoExpression } from '../lib/auth/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { namespaceCreator } from '../lib/bridge/index.ts';
import type { KubeClient } from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';

/** Which namespaces the principal may create, and with which labels. */
export interface NamespaceCreation {
  readonly pattern: GoExpression | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Reads `--namespace-create-enable`, `-pattern` and `-labels`; undefined when nothing is created.
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

/** The field manager of the principal's writes. */
export const principalFieldManager = 'argocd-agent-principal';

/**
 * Creates the namespace of an autonomous agent's Applications if it is missing.
 * @throws (when called) Error when the pattern does not allow the namespace, or the API server refuses
 */
export function hubNamespaceCreator(
  client: Pick<KubeClient, 'get' | 'create'>,
  { pattern, labels }: NamespaceCreation,
  logger: Pick<Logger, 'info'>,
): (name: string, signal: AbortSignal) => Promise<void> {
  const check = (name: string) => {
    if (pattern !== undefined && !pattern.matches(name)) {
      throw new Error(`--namespace-create-pattern ${pattern.source} does not allow it`);
    }
  };
  return namespaceCreator({ client, fieldManager: principalFieldManager, labels, check, logger });
}
