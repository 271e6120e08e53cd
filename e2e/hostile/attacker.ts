import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { until } from '../../lib/base/testing.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { agentSource, decodeEvent, encodeEvent, heartbeatEvent, type WireEvent } from '../../lib/wire/index.ts';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { wirePeer } from '../peer/index.ts';

/** How a call ended. `code` is gRPC's, -1 when the server said nothing. */
export interface CallEnd {
  readonly code: number;
  readonly message: string;
}

/** A principal to attack, and the certificate to show. */
export interface AttackTarget {
  readonly port: number;
  readonly ca: string;
  readonly certificate?: KeyCertificate;
}

/** A gRPC message: flag byte, length, payload. `length` may lie. */
export function frame(payload: Uint8Array, flag = 0, length = payload.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag, 0);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, payload]);
}

/** The bytes of an event, without their frame. */
export function eventBytes(event: WireEvent): Uint8Array {
  return Event.encode({ event: encodeEvent(event) }).finish();
}

/** A client that keeps to no rule: HTTP/2 and bytes, with as much of the protocol as an attack needs. */
export class Attacker {
  readonly session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
  }

  /** Connects with TLS. */
  static async connect({ port, ca, certificate }: AttackTarget): Promise<Attacker> {
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca,
      ALPNProtocols: ['h2'],
      ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key }),
    });
    socket.on('error', ignore);
    const session = connect(`https://127.0.0.1:${port}`, {
      createConnection: () => socket,
      maxSessionMemory: 1000,
      maxSendHeaderBlockLength: 1024 * 1024,
      settings: { enablePush: false },
    });
    session.on('error', ignore);
    await new Promise<void>((resolve) => {
      session.once('connect', () => resolve());
      session.once('close', () => resolve());
    });
    return new Attacker(session);
  }

  /** Starts a call; headers are sent as they are. */
  call(path: string, headers: OutgoingHttpHeaders = {}): AttackCall {
    return new AttackCall(
      this.session.request(
        { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc', ...headers },
        { endStream: false },
      ),
    );
  }

  /** One request, one answer. */
  async unary(
    path: string,
    request: Uint8Array,
    headers: OutgoingHttpHeaders = {},
  ): Promise<CallEnd & { bytes: Buffer }> {
    const call = this.call(path, headers);
    call.stream.end(frame(request));
    const end = await call.end;
    return { ...end, bytes: call.payloads[0] ?? Buffer.alloc(0) };
  }

  /** Logs in as the agent of the certificate. */
  async login(mode = 'managed', fields: Partial<AuthRequest> = {}): Promise<AuthResponse & CallEnd> {
    const request = { method: 'mtls', credentials: {}, mode, version: 'hostile', agentNamespace: 'argocd', ...fields };
    const { bytes, ...end } = await this.unary(
      '/authapi.Authentication/Authenticate',
      AuthRequest.encode(AuthRequest.fromPartial(request)).finish(),
    );
    return { ...AuthResponse.decode(bytes), ...end };
  }

  /** Uses a refresh token, or what passes for one. */
  async refresh(refreshToken: string): Promise<CallEnd> {
    return this.unary('/authapi.Authentication/RefreshToken', RefreshTokenRequest.encode({ refreshToken }).finish());
  }

  /** Asks for the event stream. */
  subscribe(token: string | undefined, headers: OutgoingHttpHeaders = {}): AttackCall {
    return this.call('/eventstreamapi.EventStream/Subscribe', {
      ...(token === undefined ? {} : { authorization: token }),
      ...headers,
    });
  }

  close(): void {
    this.session.destroy();
  }
}

/** A call of an attacker. What the server sends is read, and its events are acknowledged unless told otherwise. */
export class AttackCall {
  readonly stream: ClientHttp2Stream;
  /** Messages of the server. */
  readonly payloads: Buffer[] = [];
  readonly end: Promise<CallEnd>;
  /** Whether the server's events are acknowledged. */
  isPolite = true;
  readonly #peer = wirePeer(agentSource, { hears: () => this.isPolite });
  #rest: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    this.#peer.start((event) => void this.send(event));
    stream.on('error', ignore);
    stream.setMaxListeners(0);
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    this.end = new Promise((resolve) => {
      const look = (headers: Record<string, unknown>) => {
        if (headers['grpc-status'] === undefined) {
          return;
        }
        const message = decodeURIComponent(String(headers['grpc-message'] ?? ''));
        this.#ended = true;
        resolve({ code: Number(headers['grpc-status']), message });
      };
      stream.on('response', look);
      stream.on('trailers', look);
      stream.on('close', () => {
        this.#ended = true;
        resolve({ code: -1, message: '' });
      });
    });
  }

  /** Events of the server, its acknowledgements apart. */
  get events(): WireEvent[] {
    return this.#peer.events();
  }

  get isOver(): boolean {
    return this.#ended;
  }

  /** Writes bytes; resolves when more may be written, or the call is over. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#ended || this.stream.destroyed || this.stream.closed || this.stream.write(bytes)) {
      return;
    }
    await new Promise<void>((resolve) => {
      const done = () => {
        this.stream.off('drain', done);
        this.stream.off('close', done);
        resolve();
      };
      this.stream.on('drain', done);
      this.stream.on('close', done);
    });
  }

  /** Sends an event. */
  async send(event: WireEvent): Promise<void> {
    await this.write(frame(eventBytes(event)));
  }

  /** Resolves when everything sent before was taken from the stream: a heartbeat was acknowledged, or the call is over. */
  async settle(): Promise<void> {
    await this.sendAll([heartbeatEvent({ source: agentSource })]);
  }

  /** Sends events and resolves when each was acknowledged. */
  async sendAll(events: readonly WireEvent[]): Promise<void> {
    for (const event of events) {
      await this.send(event);
    }
    const missing = () => {
      const acknowledged = new Set(this.#peer.events('eventProcessed').map(({ eventId }) => eventId));
      return events.filter(({ eventId }) => !acknowledged.has(eventId)).map(({ target, type }) => `${target}/${type}`);
    };
    await until('everything is acknowledged', async () => this.#ended || missing().length === 0, {
      details: () => `missing: ${missing()}`,
    });
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 5) {
      const end = 5 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < end) {
        return;
      }
      const payload = this.#rest.subarray(5, end);
      this.#rest = this.#rest.subarray(end);
      this.payloads.push(payload);
      this.#event(payload);
    }
  }

  #event(payload: Buffer): void {
    try {
      this.#peer.take(decodeEvent(Event.decode(payload).event));
    } catch {
      // An answer of another method.
    }
  }
}

function ignore(): void {
  // Broken connections are what an attack expects.
}
