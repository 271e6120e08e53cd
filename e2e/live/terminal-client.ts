import { once } from 'node:events';
import { WebSocket } from 'ws';
import { until } from '../../lib/base/testing.ts';
import { channel, channelMessage, resizeMessage, stdinClosed } from '../../lib/live/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';

/** What a terminal said when it ended. */
export interface Outcome {
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly code?: number;
  readonly details?: { readonly causes?: readonly { readonly message?: string }[] };
}

/** A terminal as a user of Argo CD has it: a WebSocket to the resource proxy on which Kubernetes' streams are spoken. */
export class TerminalClient {
  readonly webSocket: WebSocket;
  stdout = '';
  stderr = '';
  outcome: Outcome | undefined;
  closeCode: number | undefined;

  private constructor(webSocket: WebSocket) {
    this.webSocket = webSocket;
    webSocket.on('message', (message: Buffer) => {
      const text = message.subarray(1).toString('utf8');
      if (message[0] === channel.stdout) {
        this.stdout += text;
      }
      if (message[0] === channel.stderr) {
        this.stderr += text;
      }
      if (message[0] === channel.error) {
        this.outcome = JSON.parse(text) as Outcome;
      }
    });
    webSocket.on('error', () => undefined);
    webSocket.on('close', (code) => {
      this.closeCode = code;
    });
  }

  /** Opens a terminal. @throws Error when it is refused before it is a WebSocket */
  static async open(
    at: { readonly port: number; readonly authority: KeyCertificate; readonly client: KeyCertificate },
    path: string,
    protocols: readonly string[] = ['v5.channel.k8s.io'],
  ): Promise<TerminalClient> {
    const { port, authority, client } = at;
    const tls = { ca: authority.certificate, cert: client.certificate, key: client.key };
    const webSocket = new WebSocket(`wss://127.0.0.1:${port}${path}`, [...protocols], tls);
    const terminal = new TerminalClient(webSocket);
    await once(webSocket, 'open');
    return terminal;
  }

  type(text: string): void {
    this.webSocket.send(channelMessage(channel.stdin, text));
  }

  resize(rows: number, cols: number): void {
    this.webSocket.send(resizeMessage({ rows, cols }));
  }

  endInput(): void {
    this.webSocket.send(stdinClosed);
  }

  /** Resolves when the output holds the text. */
  async shows(text: string): Promise<void> {
    await until(`the terminal shows ${JSON.stringify(text)}`, async () => this.stdout.includes(text), {
      details: () => JSON.stringify([this.stdout.slice(-2_000), this.stderr, this.outcome, this.closeCode]),
    });
  }

  /** How it ended. */
  async ends(): Promise<Outcome> {
    return until('the terminal ends', async () => (this.closeCode === undefined ? undefined : (this.outcome ?? {})), {
      details: () => JSON.stringify([this.stdout.slice(-2_000), this.stderr, this.outcome]),
    });
  }
}
