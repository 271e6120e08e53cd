import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';

/** A viewer whose connection a test holds: what is written stays unread until the test takes it. */
export interface HeldViewer {
  readonly response: ServerResponse;
  /** Takes nothing from now on. */
  hold(): void;
  /** Takes all that has been written, and what comes. */
  take(): void;
  /** What has been taken. */
  text(): string;
  /** The messages that have been taken. */
  messages(): { readonly id: number; readonly event: string; readonly body: Record<string, unknown> }[];
}

/** A request to Node's HTTP server over a connection that is the test's. It takes everything at first. */
export async function heldViewer(): Promise<HeldViewer> {
  let isHeld = false;
  let text = '';
  let waiting: (() => void) | undefined;
  const socket = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      const take = () => {
        text += chunk.toString();
        done();
      };
      if (isHeld) {
        waiting = take;
      } else {
        take();
      }
    },
  });
  const server = createServer();
  socket.once('close', () => server.close());
  const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  server.emit('connection', socket);
  // In version 1.0 the answer is not cut into chunks.
  socket.push('GET / HTTP/1.0\r\n\r\n');
  const [, response] = await asked;
  return {
    response,
    hold() {
      isHeld = true;
    },
    take() {
      isHeld = false;
      waiting?.();
      waiting = undefined;
    },
    text: () => text,
    messages: () =>
      [...text.matchAll(/(?:id: (\d+)\n)?event: (\w+)\ndata: (.*)\n\n/g)].map(([, id, event = '', data = '']) => ({
        id: Number(id),
        event,
        body: JSON.parse(data),
      })),
  };
}
