import { CertificateResponse, EnrollRequest, RenewRequest } from '../../../proto/gen/enrolmentapi/enrolment.ts';
import { WireError } from '../errors.ts';
import type { GrpcTransport } from '../grpc/client/client.ts';
import { type ClientCall, callUnary } from '../grpc/client/client-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { paths } from '../methods.ts';
import type { ClientTls } from '../tls.ts';
import { type ConnectionOptions, connect } from './connect.ts';
import { explain } from './failures.ts';
import type { LoggedIn } from './login.ts';

const connectMs = 15_000;
/** Of an answer. */
const maxMessageBytes = 512 * 1024;
/** Until the answer. */
const timeoutMs = 30_000;
const refusedHint =
  'Make a new token with argocd-agent enroll NAME --again on the hub, and apply what it prints to this cluster.';
const unservedHint =
  'It needs --enable-enrolment, which argocd-agent has not: there, use argocd-agent enroll --certificate=generate.';

/**
 * Exchanges a token for a certificate, on a connection of its own.
 * @param options.request PKCS #10, PEM
 * @throws WireError that says why there is none
 */
export async function requestCertificate(
  options: Omit<ConnectionOptions, 'signal'> & {
    readonly tls: ClientTls | 'plaintext';
    readonly token: string;
    readonly request: string;
    readonly signal: AbortSignal;
  },
): Promise<CertificateResponse> {
  const { server, tls, token, request } = options;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  let transport: GrpcTransport | undefined;
  try {
    const connected = await connect({ ...options, maxMessageBytes, signal }, tls, { connectMs, pingFactor: 1 });
    transport = connected;
    const call = () => connected.call(paths.enroll);
    return await ask(call, EnrollRequest.encode({ token, request }).finish(), server, signal);
  } catch (error) {
    throw await explain(error, transport, server);
  } finally {
    transport?.destroy();
  }
}

/** Requests a certificate in place of the one that we have logged in with. @throws WireError that says why there is none */
export async function renewCertificate(
  login: Pick<LoggedIn, 'call'>,
  { server, request, signal }: { readonly server: string; readonly request: string; readonly signal: AbortSignal },
): Promise<CertificateResponse> {
  try {
    const call = await login.call(paths.renew);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    return await ask(() => call, RenewRequest.encode({ request }).finish(), server, limited);
  } catch (error) {
    throw await explain(error, undefined, server);
  }
}

async function ask(
  begin: () => ClientCall,
  request: Uint8Array,
  server: string,
  signal: AbortSignal,
): Promise<CertificateResponse> {
  try {
    return CertificateResponse.decode(await callUnary(begin(), request, signal));
  } catch (cause) {
    if (!(cause instanceof GrpcError)) {
      throw cause;
    }
    // A principal without the service refuses clients without a certificate, or does not know the method.
    const isUnserved =
      cause.code === grpcStatus.unimplemented || cause.details.startsWith('client certificate rejected');
    if (isUnserved) {
      const message = `The principal at ${server} gives no certificates to agents`;
      throw new WireError('not-accepting', message, { hint: unservedHint, cause });
    }
    if (cause.code === grpcStatus.unauthenticated) {
      const message = `The principal at ${server} gives us no certificate: ${cause.details}`;
      throw new WireError('unauthenticated', message, { hint: refusedHint, cause });
    }
    throw cause;
  }
}
