import { expect, test } from 'vitest';
import { noLog } from '../../../e2e/peer/index.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { replicationPaths } from '../methods.ts';
import { type ReplicaStream, type ReplicationService, serveReplication } from './replication-service.ts';

test('a standby that may not follow any more loses its stream when it is judged again', () => {
  let mayFollow = true;
  let stream: ReplicaStream | undefined;
  const ended: unknown[] = [];
  const nothing = () => undefined;
  const call = {
    path: replicationPaths.subscribe,
    accept: nothing,
    listen: nothing,
    fail: (why: unknown) => ended.push(why),
  };
  const service = {
    authorize: ({ address }: { address: string }) => {
      if (!mayFollow) {
        throw new GrpcError(grpcStatus.permissionDenied, `${address} may not follow this principal`);
      }
      return 'hub2';
    },
    subscribe: (one: ReplicaStream) => {
      stream = one;
      return { acknowledged: nothing, closed: nothing };
    },
  };
  const peer = { address: '127.0.0.1:1', encrypted: true };
  serveReplication(call as unknown as ServerCall, service as unknown as ReplicationService, {
    peer: peer as never,
    connection: {},
    logger: noLog,
    accepted: nothing,
  });
  stream?.judge();
  expect(ended).toEqual([]);
  mayFollow = false;
  stream?.judge();
  expect(ended).toEqual([expect.objectContaining({ code: grpcStatus.permissionDenied })]);
});
