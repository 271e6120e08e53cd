import { sleep } from '../../base/index.ts';
import { WireError } from '../errors.ts';
import { type GrpcTransport, tooManyPings } from '../grpc/client/client.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';

/** How much later than a failed call the error of its connection may be reported. */
const reasonDelayMs = 250;

/** Explains why a call, or the connection itself, failed; waits a little for the connection's own error. */
export async function explain(
  error: unknown,
  transport: GrpcTransport | undefined,
  server: string,
): Promise<WireError> {
  const isLost = error instanceof GrpcError && error.isConnectionLoss;
  if (isLost && transport !== undefined && transport.failure === undefined) {
    await Promise.race([transport.closed, sleep(reasonDelayMs)]);
  }
  return explainFailure(error, server, transport?.failure);
}

/** Explains a failure to connect, or the end of a connection, to the operator of the agent. */
function explainFailure(error: unknown, server: string, broken: Error | undefined): WireError {
  if (error instanceof WireError) {
    return error;
  }
  if (error instanceof GrpcError) {
    if (!error.isConnectionLoss) {
      return explainStatus(error, server);
    }
    // The status of an interrupted call has no reason; the error of TLS or TCP has.
    const reason = broken ?? new Error(error.details, { cause: error });
    return explainConnection(reason, server) ?? unreachable(server, reason);
  }
  if (codeOf(error) !== '') {
    return explainConnection(error, server) ?? unreachable(server, error);
  }
  const why = error instanceof Error ? error.message : String(error);
  return new WireError('protocol', `The connection to ${server} failed: ${why}`, { cause: error });
}

function explainStatus(error: GrpcError, server: string): WireError {
  const { details } = error;
  switch (error.code) {
    case grpcStatus.unauthenticated:
      if (details.startsWith('client certificate rejected')) {
        return new WireError('certificate-rejected', `The principal at ${server} refused us: ${details}`, {
          hint: "The agent's client certificate must be in force and issued by the CA that the principal trusts.",
          cause: error,
        });
      }
      return new WireError('unauthenticated', `The principal at ${server} refused us: ${details}`, {
        hint:
          'The name in our credentials may be unknown or revoked there, or the token be of another agent; ' +
          "the principal's log says which.",
        cause: error,
      });
    case grpcStatus.failedPrecondition:
      return new WireError('version-mismatch', `The principal at ${server} refused us: ${details}`, {
        hint: 'A principal of the original takes only agents of its own version.',
        cause: error,
      });
    case grpcStatus.unavailable:
      return new WireError('not-accepting', `The principal at ${server} does not serve us now: ${details}`, {
        cause: error,
      });
    case grpcStatus.canceled:
      return new WireError('closed', `The connection to ${server} was ended`, { cause: error });
    case grpcStatus.resourceExhausted:
      return new WireError('too-large', `The connection to ${server} was ended: ${details}`, {
        hint: 'Raise --grpc-max-message-size on both sides.',
        cause: error,
      });
    case grpcStatus.unimplemented:
      return new WireError('protocol', `What answers at ${server} is no principal: ${details}`, { cause: error });
    default:
      return new WireError('protocol', `The principal at ${server} answered with an error: ${error.message}`, {
        cause: error,
      });
  }
}

function unreachable(server: string, cause: unknown): WireError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new WireError('unreachable', `The principal at ${server} cannot be reached: ${why}`, { cause });
}

function explainConnection(error: unknown, server: string): WireError | undefined {
  const code = codeOf(error);
  const untrusted = untrustedReasons[code];
  if (untrusted !== undefined) {
    const [why, hint] = untrusted;
    return new WireError('server-untrusted', `The certificate of the principal at ${server} ${why}`, {
      hint,
      cause: error,
    });
  }
  if (code === 'ERR_TLS_CERT_IDENTITY') {
    const why = (error as Error).message;
    return new WireError('server-untrusted', `The certificate of the principal at ${server} does not count: ${why}`, {
      hint: "The principal's entry at SPIRE gives it its SPIFFE ID; one of another trust domain needs federation with that.",
      cause: error,
    });
  }
  const rejected = rejectedReasons[code];
  if (rejected !== undefined) {
    return new WireError(
      'certificate-rejected',
      `The principal at ${server} refused our client certificate: ${rejected}`,
      {
        hint: "The agent's client certificate must be in force and issued by the CA that the principal trusts.",
        cause: error,
      },
    );
  }
  const wrongProtocol = protocolReasons[code];
  if (wrongProtocol !== undefined) {
    return new WireError('protocol', `What answers at ${server} ${wrongProtocol}`, {
      hint: webSocketHint,
      cause: error,
    });
  }
  if (code === tooManyPings) {
    return new WireError('unreachable', `The principal at ${server} ended the connection: we ping too often for it`, {
      hint: "Raise --keep-alive-ping-interval, or lower the principal's --keepalive-min-interval (5 minutes unless set).",
      cause: error,
    });
  }
  const plain = networkReasons[code];
  return plain === undefined ? undefined : unreachable(server, new Error(plain, { cause: error }));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

const wrongCa: [string, string] = [
  'is not issued by a CA that we trust',
  'The CA bundle of the agent (Secret argocd-agent-ca, or --root-ca-path) must hold the CA of the principal.',
];

const untrustedReasons: Readonly<Record<string, [string, string]>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: wrongCa,
  UNABLE_TO_GET_ISSUER_CERT: wrongCa,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: wrongCa,
  SELF_SIGNED_CERT_IN_CHAIN: wrongCa,
  DEPTH_ZERO_SELF_SIGNED_CERT: wrongCa,
  CERT_SIGNATURE_FAILURE: wrongCa,
  CERT_HAS_EXPIRED: ['has expired', 'Renew the certificate of the principal, and check the clocks of both sides.'],
  CERT_NOT_YET_VALID: ['is not valid yet', 'Check the clocks of both sides.'],
  INVALID_PURPOSE: ['is not meant for servers', 'It needs the extended key usage serverAuth.'],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    'is for another name',
    'Connect to one of the names in the certificate, or issue one that names this address.',
  ],
};

const rejectedReasons: Readonly<Record<string, string>> = {
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'it asks for one and got none from its own CA',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'it does not know the CA that issued it',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'it has expired',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: 'it is revoked',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: 'it finds it unacceptable',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'it finds it unacceptable, or got none',
  ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: 'it cannot use a certificate of this kind',
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: 'it ended the handshake; most likely it wants a certificate and got none',
};

const webSocketHint =
  'Where a proxy between agent and principal lets only HTTP/1.1 through, set --enable-websocket on both sides.';

const protocolReasons: Readonly<Record<string, string>> = {
  ERR_ALPN: 'does not speak HTTP/2 (ALPN h2)',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'does not speak the version of HTTP that we speak',
};

const networkReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be resolved now',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the network',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS; is it a plaintext port?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS; is it a plaintext port?',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'it offers no TLS version that we accept',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'it offers no TLS version that we accept',
};
