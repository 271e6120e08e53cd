import { statusText } from './status.ts';

/** The `Status` of a command that succeeded, with the text of Kubernetes. */
export const successStatus = JSON.stringify({ metadata: {}, status: 'Success' });

/** The `Status` of a command that ended with this exit code. */
export function exitStatus(code: number): string {
  if (code === 0) {
    return successStatus;
  }
  return JSON.stringify({
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  });
}

/**
 * The `Status` for the error text of an argocd-agent agent about a failed command: the text of client-go, which
 * hold the exit code when there is one.
 */
export function statusOfWords(words: string): string {
  const [, code] = /^command terminated with exit code (\d{1,9})$/.exec(words) ?? [];
  if (code !== undefined) {
    return exitStatus(Number(code));
  }
  return statusText(500, words.slice(0, 4_096) || 'the agent gives no reason');
}

/** The plain text of a `Status`, for clients before v4; empty after success. */
export function wordsOfStatus(status: string): string {
  try {
    const { status: outcome, message } = JSON.parse(status) as { status?: unknown; message?: unknown };
    if (outcome === 'Success') {
      return '';
    }
    if (typeof message === 'string') {
      return message;
    }
  } catch {
    // A text that is not a Status may be plain text already.
  }
  return status;
}
