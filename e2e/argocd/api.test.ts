import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setImmediate as soon } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { ArgoCdApi } from './api.ts';

// The streams of Argo CD's API server are event streams, as browsers read them.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

let api: ArgoCdApi;
let stop: () => Promise<void>;
let answer: (response: ServerResponse) => Promise<void>;

beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'ca' });
  const { certificate: cert, key } = await issueCertificate({
    authority,
    commonName: 'argocd-server',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  const server = createServer({ cert, key }, (_request, response) => void answer(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  api = new ArgoCdApi({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, 'token');
  stop = async () => {
    api.close();
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
});
afterAll(() => stop());

/** The messages of a stream that consists of these bytes, sent as these chunks, and ends. */
async function messagesOf(chunks: readonly (string | Buffer)[]): Promise<unknown[]> {
  answer = async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    for (const chunk of chunks) {
      response.write(chunk);
      await soon();
    }
    response.end();
  };
  const messages: unknown[] = [];
  for await (const message of api.stream('/stream', new AbortController().signal)) {
    messages.push(message);
  }
  return messages;
}

test.each([
  ['as Argo CD sends it', 'data: {"result":1} \n\ndata: {"result":2} \n\n', [1, 2]],
  [
    'comments, which keep the connection open',
    ':\n:\ndata: {"result":1}\n:\n\n: a comment\n\n:\ndata: {"result":2}\n\n',
    [1, 2],
  ],
  ['CRLF', 'data: {"result":1}\r\n\r\n:\r\ndata: {"result":2}\r\n\r\n', [1, 2]],
  ['CR', 'data: {"result":1}\r\r:\rdata: {"result":2}\r\r', [1, 2]],
  ['data of several lines', 'data: {"result":\ndata\ndata:  [1,\ndata:2]}\n\n', [[1, 2]]],
  ['other fields', 'event: x\nid: 1\nretry: 5\ndata: {"result":1}\ndatax: 2\n\n', [1]],
  ['events without data, and empty lines', '\n\nevent: x\n\ndata\n\ndata:\n\ndata: {"result":1}\n\n\n', [1]],
  ['a byte order mark', '\ufeffdata: {"result":1}\n\n', [1]],
  ['an event that is not complete', 'data: {"result":1}\n\ndata: {"result":2}\n', [1]],
  ['messages without a result', 'data: {}\n\ndata: {"result":1}\n\n', [1]],
  ['letters of several bytes', 'data: {"result":"ä€😀"}\n\n', ['ä€😀']],
])('an event stream: %s, cut anywhere', async (_what, text, messages) => {
  const bytes = Buffer.from(text);
  expect(await messagesOf([bytes])).toEqual(messages);
  expect(await messagesOf([...bytes].map((byte) => Buffer.from([byte])))).toEqual(messages);
  for (let cut = 1; cut < bytes.length; cut++) {
    expect(await messagesOf([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(messages);
  }
});

test('an error within a stream, and instead of one', async () => {
  const text = 'data: {"error":{"message":"no permission"}}\n\n';
  await expect(messagesOf([text])).rejects.toThrow('/stream: 200 no permission');
  answer = async (response) => void response.writeHead(403).end('no');
  await expect(api.stream('/stream', new AbortController().signal).next()).rejects.toThrow('/stream: 403 no');
});

test('a message is there as soon as it is complete, and the signal ends the stream', async () => {
  answer = async (response) => void response.writeHead(200).write('data: {"result":1}\n\n:\n');
  const stopped = new AbortController();
  const messages = api.stream('/stream', stopped.signal);
  expect(await messages.next()).toEqual({ done: false, value: 1 });
  const next = messages.next();
  stopped.abort();
  expect(await next).toEqual({ done: true, value: undefined });
});
