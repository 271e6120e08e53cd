import type { Http2Session } from 'node:http2';

/**
 * Watches a connection: when nothing was received for `intervalMs` it is pinged, and destroyed when the answer takes
 * longer than `timeoutMs`. Returns the way to stop.
 */
export function watchSession(
  session: Http2Session,
  timing: { readonly intervalMs: number; readonly timeoutMs: number },
  dead: () => void,
): () => void {
  let received = 0;
  let deadline: NodeJS.Timeout | undefined;
  const probe = () => {
    if (session.destroyed || session.closed || deadline !== undefined) return;
    const { bytesRead } = session.socket;
    const isQuiet = bytesRead === received;
    received = bytesRead;
    if (!isQuiet) return;
    deadline = setTimeout(() => {
      dead();
      session.destroy(new Error(`no answer to a ping within ${timing.timeoutMs} ms`));
    }, timing.timeoutMs);
    deadline.unref();
    session.ping(() => {
      clearTimeout(deadline);
      deadline = undefined;
    });
  };
  const timer = setInterval(probe, timing.intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    clearTimeout(deadline);
  };
}
