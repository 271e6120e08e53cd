import type { ServerCall } from './grpc/server-call.ts';
import { GrpcError, grpcStatus } from './grpc/status.ts';

/** The method paths that a principal serves to agents. */
export const paths = {
  authenticate: '/authapi.Authentication/Authenticate',
  refreshToken: '/authapi.Authentication/RefreshToken',
  version: '/versionapi.Version/Version',
  subscribe: '/eventstreamapi.EventStream/Subscribe',
  push: '/eventstreamapi.EventStream/Push',
  ping: '/eventstreamapi.EventStream/Ping',
} as const;

/** Runs a unary method: one request of bounded size, one answer or error. */
export function collectUnary(
  call: ServerCall,
  maxBytes: number,
  answer: (request: Uint8Array) => Promise<Uint8Array>,
): void {
  let request: Uint8Array | undefined;
  call.listen({
    message(bytes) {
      if (bytes.byteLength > maxBytes) call.finish(grpcStatus.resourceExhausted, 'the request is too large');
      else if (request !== undefined) call.finish(grpcStatus.internal, 'the request has more than one message');
      else request = bytes;
    },
    halfClose() {
      if (request === undefined) {
        call.finish(grpcStatus.internal, 'the request has no message');
        return;
      }
      runUnary(call, request, answer);
    },
    end: () => undefined,
  });
}

function runUnary(call: ServerCall, request: Uint8Array, answer: (request: Uint8Array) => Promise<Uint8Array>): void {
  answer(request).then(
    (response) => {
      call.send(response);
      call.finish();
    },
    (error: unknown) => {
      // What protobuf says about a broken request is for its sender.
      call.fail(error instanceof GrpcError ? error : new GrpcError(grpcStatus.internal, 'the request cannot be read'));
    },
  );
}
