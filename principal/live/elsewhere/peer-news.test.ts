import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PeerNews } from './peer-news.ts';

const peer = { fingerprint: 'ab', identity: 'near' } as Parameters<PeerNews['follow']>[0];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A peer that reads nothing, with a client that follows channel `tree` of agent `edge`. */
function start() {
  const lines: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    isDestroyed: false,
    get writableLength() {
      return lines.join('').length;
    },
    writeHead: () => response,
    flushHeaders: () => undefined,
    write: (line: string) => lines.push(line),
    destroy: () => {
      response.isDestroyed = true;
      response.emit('close');
    },
  });
  const news = new PeerNews();
  news.follow(peer, response as unknown as ServerResponse);
  news.asked(peer, 'edge', { connectionUuid: 'c', body: { subscribe: { channel: 'tree' } } });
  return { news, response, lines };
}

test('an agent cannot end the news of the others, however many messages it sends', async () => {
  const { news, response, lines } = start();
  for (let count = 0; count < 100_000; count++) {
    news.news('edge', 'c', 'tree');
    news.news('edge', 'c', `no-${count}`);
    news.news('other', 'c', 'tree');
  }
  await vi.advanceTimersByTimeAsync(10_000);
  const line = `${JSON.stringify({ agent: 'edge', connectionUuid: 'c', channel: 'tree' })}\n`;
  expect(lines).toEqual([line, line]);
  expect(response.isDestroyed).toBe(false);
});

test('a later command of the same client keeps its channels; a peer that has left leaves no timer', async () => {
  const { news, response, lines } = start();
  news.asked(peer, 'edge', { connectionUuid: 'c', body: {} });
  news.news('edge', 'c', 'tree');
  news.news('edge', 'c', 'tree');
  response.destroy();
  expect(vi.getTimerCount()).toBe(0);
  expect(lines).toHaveLength(1);
});
