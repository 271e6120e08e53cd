import type { CallListener, ServerCall } from './grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from './grpc/status.ts';

/** The method paths that a principal serves to agents. */
export const paths = {
  authenticate: '/authapi.Authentication/Authenticate',
  refreshToken: '/authapi.Authentication/RefreshToken',
  version: '/versionapi.Version/Version',
  subscribe: '/eventstreamapi.EventStream/Subscribe',
  push: '/eventstreamapi.EventStream/Push',
  ping: '/eventstreamapi.EventStream/Ping',
  streamLogs: '/principal.apis.logstreamapi.LogStreamService/StreamLogs',
  enroll: '/enrolmentapi.Enrolment/Enroll',
  renew: '/enrolmentapi.Enrolment/Renew',
  streamTerminal: '/terminalstreamapi.TerminalStreamService/StreamTerminal',
} as const;

/** The method paths of the service by which a second principal is kept in step. */
export const replicationPaths = {
  subscribe: '/replicationapi.Replication/Subscribe',
  snapshot: '/replicationapi.Replication/GetSnapshot',
  status: '/replicationapi.Replication/Status',
  confirm: '/replicationapi.Replication/ConfirmMissingResources',
  /** Not in argocd-agent. */
  refused: '/replicationapi.Replication/ReportRefused',
} as const;

/** The method paths of the administration of a pair of principals. */
export const haAdminPaths = {
  status: '/haadminapi.HAAdmin/Status',
  promote: '/haadminapi.HAAdmin/Promote',
  demote: '/haadminapi.HAAdmin/Demote',
} as const;

/** Runs a unary method of a peer: one request of bounded size and within a bounded time, one answer or error. */
export function collectUnary(
  call: ServerCall,
  limits: { readonly maxBytes: number; readonly timeoutMs: number; readonly peer: string },
  answer: (request: Uint8Array) => Promise<Uint8Array>,
): void {
  let request: Uint8Array | undefined;
  const timer = setTimeout(() => {
    call.finish(grpcStatus.deadlineExceeded, `the request did not come within ${limits.timeoutMs} ms`);
  }, limits.timeoutMs).unref();
  const listener: CallListener = {
    message(bytes) {
      if (request !== undefined) {
        call.finish(grpcStatus.internal, 'the request has more than one message');
      } else {
        request = bytes;
      }
    },
    unreadable: (error) => call.fail(error),
    halfClose() {
      clearTimeout(timer);
      if (request === undefined) {
        call.finish(grpcStatus.internal, 'the request has no message');
      } else {
        runUnary(call, request, answer);
      }
    },
    end: () => clearTimeout(timer),
  };
  call.listen(listener, { maxMessageBytes: limits.maxBytes, peer: limits.peer });
}

function runUnary(call: ServerCall, request: Uint8Array, answer: (request: Uint8Array) => Promise<Uint8Array>): void {
  answer(request).then(
    (response) => {
      call.send(response);
      call.finish();
    },
    (error: unknown) => {
      // The sender gets protobuf's error about an invalid request.
      call.fail(error instanceof GrpcError ? error : new GrpcError(grpcStatus.internal, 'the request cannot be read'));
    },
  );
}
