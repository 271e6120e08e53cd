import { isTooLarge } from '../../sync/index.ts';

/** An API server may repeat a large value that it refuses. */
const longest = 1_000;

/** Why a write failed, for people: what can never pass says what to do. */
export function failureText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return isTooLarge(error) ? `${short}; it is too large for the API server and has to be made smaller` : short;
}
