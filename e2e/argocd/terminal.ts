import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { ArgoCdApi } from './api.ts';

/** A terminal in Argo CD's UI: what its page sends to the API server, and shows. */
export class ArgoCdTerminal {
  readonly #webSocket: WebSocket;
  /** Resolves when it is closed, whoever closed it. */
  readonly closed: Promise<unknown>;
  shown = '';
  #look: () => void = () => undefined;

  private constructor(webSocket: WebSocket) {
    this.#webSocket = webSocket;
    this.closed = new Promise((resolve) => webSocket.once('close', resolve));
    webSocket.on('message', (message: Buffer) => {
      const { operation, data } = JSON.parse(message.toString()) as { operation: string; data: string };
      if (operation === 'stdout') {
        this.shown += data;
      }
      this.#look();
    });
    webSocket.on('error', () => undefined);
    webSocket.on('close', () => this.#look());
  }

  /** Opens one into a container of a pod. @throws Error when it is refused: `Unexpected server response: 403` */
  static async open(
    { address, token }: ArgoCdApi,
    where: {
      readonly pod: string;
      readonly container: string;
      readonly namespace: string;
      readonly appName: string;
      readonly appNamespace: string;
      readonly projectName: string;
    },
  ): Promise<ArgoCdTerminal> {
    const url = `wss://${address.host}:${address.port}/terminal?${new URLSearchParams({ ...where })}`;
    const headers = { cookie: `argocd.token=${token}` };
    // Its certificate is one that it made for itself.
    const webSocket = new WebSocket(url, { headers, rejectUnauthorized: false });
    const terminal = new ArgoCdTerminal(webSocket);
    await once(webSocket, 'open');
    return terminal;
  }

  type(data: string): void {
    this.#send({ operation: 'stdin', data });
  }

  resize(rows: number, cols: number): void {
    this.#send({ operation: 'resize', rows, cols });
  }

  /** Resolves when the text is shown. @throws Error with what is shown instead, in the end or when it is closed */
  shows(text: string, timeoutMs = 240_000): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const complain = () => reject(new Error(`the terminal shows ${JSON.stringify(this.shown)}, not ${text}`));
    const timer = setTimeout(complain, timeoutMs);
    this.#look = () => {
      if (this.shown.includes(text)) {
        resolve();
      } else if (this.#webSocket.readyState === WebSocket.CLOSED) {
        complain();
      }
    };
    this.#look();
    return promise.finally(() => clearTimeout(timer));
  }

  /** The user leaves the page. */
  close(): void {
    this.#webSocket.close();
  }

  #send(message: object): void {
    this.#webSocket.send(JSON.stringify(message));
  }
}
