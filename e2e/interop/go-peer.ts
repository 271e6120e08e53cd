import { type SupervisedProcess, spawnTalker } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { GoCall, type GoCallListener, GoConnection, type GoReport, type Lines } from './go-calls.ts';

/** Key material in PEM form. A server asks for client certificates when it has a `ca`. */
export interface GoTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly serverName?: string;
  readonly minVersion?: '1.2' | '1.3';
}

/** A listening server of a {@link GoPeer}. */
export interface GoServer {
  /** `host:port`. */
  readonly address: string;
  /** Ends all streams at once, or waits for their end. Resolves when nothing listens any more. */
  stop(graceful?: boolean): Promise<void>;
}

/** Originals accept and send messages of this size. */
const maxMessageBytes = 200 * 1024 * 1024;

/**
 * A process that speaks gRPC with grpc-go, as argocd-agent's originals do, and carries messages as raw bytes: the
 * transport half of a peer that shares no code with ours.
 */
export class GoPeer {
  #process: SupervisedProcess | undefined;
  readonly #listeners = new Map<string, (report: GoReport) => void>();
  readonly #lines: Lines;
  #count = 0;

  private constructor() {
    this.#lines = {
      // What is written to a process that has ended is lost; who waits for an answer notices.
      write: (line) => void this.#process?.input?.write(`${JSON.stringify(line)}\n`),
      listen: (id, listener) => this.#listeners.set(id, listener),
      forget: (id) => this.#listeners.delete(id),
      name: (what) => `${what}-${++this.#count}`,
    };
  }

  /** Starts the process; the first time on a machine builds it. */
  static async start(): Promise<GoPeer> {
    const peer = new GoPeer();
    peer.#process = await spawnTalker(await toolPath('gopeer'), [], { onLine: (line) => peer.#take(JSON.parse(line)) });
    return peer;
  }

  /** A connection with the dial options of argocd-agent's agent; it connects at the first call. */
  dial(options: {
    readonly address: string;
    readonly tls?: GoTls;
    readonly gzip?: boolean;
    readonly keepaliveMs?: number;
    readonly maxMessageBytes?: number;
  }): GoConnection {
    const id = this.#lines.name('connection');
    const connection = new GoConnection(id, this.#lines);
    this.#lines.write({ op: 'dial', id, maxMessageBytes, ...options });
    return connection;
  }

  /** A server with the options of argocd-agent's principal, on a free port of 127.0.0.1 or the address given. */
  async listen(options: {
    readonly address?: string;
    readonly tls?: GoTls;
    /** The shortest interval of pings that clients may use; grpc-go's default is 5 minutes. */
    readonly keepaliveMs?: number;
    readonly maxMessageBytes?: number;
    accept(call: GoCall): GoCallListener;
  }): Promise<GoServer> {
    const { accept, ...rest } = options;
    const id = this.#lines.name('server');
    const started = Promise.withResolvers<string>();
    const stopped = Promise.withResolvers<void>();
    this.#lines.listen(id, (report) => {
      if (report.event === 'listening') {
        started.resolve(report.address ?? '');
      } else if (report.event === 'stopped') {
        stopped.resolve();
      } else if (report.event === 'failed') {
        started.reject(new Error(report.message));
      } else if (report.event === 'call') {
        const call = new GoCall(report, this.#lines);
        call.follow(accept(call));
      }
    });
    this.#lines.write({ op: 'listen', id, address: '127.0.0.1:0', maxMessageBytes, ...rest });
    const address = await started.promise;
    return {
      address,
      stop: (graceful = false) => {
        this.#lines.write({ op: 'stop', id, graceful });
        return stopped.promise;
      },
    };
  }

  /** Ends the process and everything that is open in it. */
  async stop(): Promise<void> {
    this.#process?.input?.end();
    await this.#process?.exited;
  }

  #take(report: GoReport): void {
    const listener = this.#listeners.get(report.event === 'call' ? (report.server ?? '') : report.id);
    if (listener === undefined && report.event === 'failed') {
      throw new Error(`${report.id}: ${report.message}`);
    }
    listener?.(report);
  }
}
