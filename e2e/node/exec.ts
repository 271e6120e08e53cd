import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { channel, channelMessage, chosenProtocol, exitStatus, readInput, statusText } from '../../lib/live/index.ts';
import { type SupervisedProcess, spawnSupervised } from '../testbed/index.ts';
import type { ContainerRun } from './container.ts';
import { isExecutable } from './sandbox.ts';

const webSockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  handleProtocols: (offered) => chosenProtocol(offered) ?? false,
});

/** Output that may wait to be read; the command waits while there is more. */
const mostWaitingBytes = 256 * 1024;

/** What is to be executed, and what of it the caller wants; the query parameters of a kubelet's `exec`. */
interface Execution {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/**
 * Executes a command in a container for the API server, which passes the WebSocket of its own caller on to nodes that declare the
 * feature `ExtendWebSocketsToKubelet`. The command ends when the connection does.
 */
export function serveExec(
  request: IncomingMessage,
  socket: IncomingMessage['socket'],
  head: Buffer,
  run: ContainerRun,
  query: URLSearchParams,
): void {
  const isAsked = (name: string) => query.get(name) === '1';
  const execution: Execution = {
    command: query.getAll('command'),
    stdin: isAsked('input'),
    stdout: isAsked('output'),
    stderr: isAsked('error'),
    tty: isAsked('tty'),
  };
  webSockets.handleUpgrade(request, socket, head, (webSocket) => {
    // Input waits until the command runs.
    webSocket.pause();
    webSocket.on('error', () => undefined);
    void execute(webSocket, run, execution).then(
      (status) => finish(webSocket, status),
      (error: Error) => finish(webSocket, statusText(500, `error executing command in container: ${error.message}`)),
    );
  });
}

function finish(webSocket: WebSocket, status: string): void {
  webSocket.send(channelMessage(channel.error, status));
  webSocket.resume();
  webSocket.close(1000);
}

/** Resolves with the `Status` of the command's end. */
async function execute(webSocket: WebSocket, run: ContainerRun, execution: Execution): Promise<string> {
  const { command, stdin, stdout, stderr, tty } = execution;
  const [program = ''] = command;
  if (run.image.podman === undefined && !program.includes('/') && !isExecutable(program, run.image, [])) {
    throw new Error(`exec: "${program}": executable file not found in $PATH`);
  }
  const input = tty ? 'terminal' : stdin ? 'stream' : undefined;
  const inside = run.inside(tty ? ['/usr/bin/env', 'TERM=xterm', ...command] : command, input);
  const process = await spawnSupervised(inside.command, inside.args, {
    ...(input === undefined ? {} : { input }),
    onOutput: (out, error) => {
      pass(out, webSocket, stdout ? channel.stdout : undefined);
      pass(error, webSocket, stderr && !tty ? channel.stderr : undefined);
    },
  });
  webSocket.on('message', (message: Buffer) => take(message, process, webSocket, tty));
  webSocket.on('close', () => void process.kill());
  // It may have been closed while the command was being started.
  if (webSocket.readyState === webSocket.CLOSED) {
    void process.kill();
  }
  void run.exited.then(() => process.kill());
  webSocket.resume();
  const { code } = await process.exited;
  return exitStatus(code ?? 137);
}

function pass(from: Readable, webSocket: WebSocket, to: 1 | 2 | undefined): void {
  from.on('data', (data: Buffer) => {
    if (to === undefined || webSocket.readyState !== webSocket.OPEN) {
      return;
    }
    webSocket.send(channelMessage(to, data), () => {
      if (webSocket.bufferedAmount <= mostWaitingBytes / 2) {
        from.resume();
      }
    });
    if (webSocket.bufferedAmount > mostWaitingBytes) {
      from.pause();
    }
  });
  webSocket.on('close', () => from.resume());
}

function take(message: Buffer, process: SupervisedProcess, webSocket: WebSocket, tty: boolean): void {
  const input = readInput(message);
  if (input?.kind === 'resize') {
    process.resize(input.size.rows, input.size.cols);
  }
  // Closing the input of a terminal means nothing.
  if (input?.kind === 'closed' && !tty) {
    process.input?.end();
  }
  if (input?.kind !== 'stdin' || process.input === undefined || process.input.write(input.data)) {
    return;
  }
  webSocket.pause();
  process.input.once('drain', () => webSocket.resume());
}
