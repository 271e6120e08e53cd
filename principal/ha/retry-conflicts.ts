import { isAlreadyExists, isConflict } from '../../lib/kube/index.ts';

const mostAttempts = 10;

/**
 * Reads an object and writes it, again while another principal writes in between. Resolves with what `attempt` does.
 * @throws what `attempt` throws, also the conflict with which its last one ended
 */
export async function retryConflicts<T>(attempt: () => Promise<T>): Promise<T> {
  for (let number = 1; ; number++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(isConflict(error) || isAlreadyExists(error)) || number >= mostAttempts) {
        throw error;
      }
    }
  }
}
