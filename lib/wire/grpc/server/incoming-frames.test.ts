import { expect, test } from 'vitest';
import { Random } from '../../../../e2e/random/index.ts';
import { IncomingFrames } from './incoming-frames.ts';

/** What a frame or a piece counts at least. */
const least = 256;
const opcodes = { continuation: 0, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** A frame as a client sends it. `length` may lie. */
function frame(kind: keyof typeof opcodes, payload: Buffer, isLast = true, length = payload.length): Buffer {
  const first = (isLast ? 0x80 : 0) | opcodes[kind];
  const mask = Buffer.from([1, 2, 3, 4]);
  let head = Buffer.from([first, 0x80 | length]);
  if (length >= 65536) {
    head = Buffer.alloc(10);
    head.writeUInt16BE((first << 8) | 0xff, 0);
    head.writeBigUInt64BE(BigInt(length), 2);
  } else if (length >= 126) {
    head = Buffer.alloc(4);
    head.writeUInt16BE((first << 8) | 0xfe, 0);
    head.writeUInt16BE(length, 2);
  }
  return Buffer.concat([head, mask, payload]);
}

const pong = frame('pong', Buffer.from('here'));
const begun = frame('binary', Buffer.alloc(1000), false);

test.each([0, 1, 125, 126, 65535, 65536, 200_000])('a message of %i bytes counts until it is complete', (size) => {
  const frames = new IncomingFrames();
  const message = frame('binary', Buffer.alloc(size));
  for (let round = 0; round < 2; round++) {
    frames.take(message.subarray(0, -1));
    expect(frames.incompleteBytes).toBeGreaterThanOrEqual(Math.max(size - 1, least));
    expect(frames.incompleteBytes).toBeLessThan(size + 2 * least);
    frames.take(message.subarray(-1));
    expect(frames.incompleteBytes).toBe(0);
  }
});

test('pings, pongs and closes are no message', () => {
  const frames = new IncomingFrames();
  for (const kind of ['ping', 'pong', 'close'] as const) {
    for (const byte of frame(kind, Buffer.from('x'))) {
      frames.take(Buffer.from([byte]));
      expect(frames.incompleteBytes).toBe(0);
    }
  }
});

test('pongs amid a message neither add to it nor end it', () => {
  const frames = new IncomingFrames();
  frames.take(begun);
  const before = frames.incompleteBytes;
  for (let count = 0; count < 100; count++) {
    frames.take(pong);
  }
  expect(frames.incompleteBytes).toBe(before);
  frames.take(Buffer.concat([pong, frame('continuation', Buffer.alloc(1000))]));
  expect(frames.incompleteBytes).toBe(0);
});

test('each frame and each piece counts', () => {
  const frames = new IncomingFrames();
  frames.take(
    Buffer.concat([begun, ...Array.from({ length: 100 }, () => frame('continuation', Buffer.alloc(0), false))]),
  );
  expect(frames.incompleteBytes).toBeGreaterThanOrEqual(1000 + 100 * least);
  const inPieces = new IncomingFrames();
  inPieces.take(frame('binary', Buffer.alloc(0), true, 1000));
  for (let count = 0; count < 100; count++) {
    inPieces.take(Buffer.from('x'));
  }
  expect(inPieces.incompleteBytes).toBeGreaterThanOrEqual(100 * least);
});

test('it does not matter where frames are cut, except that more pieces count more', () => {
  const random = new Random(7);
  const all = Buffer.concat([pong, begun, pong, frame('continuation', Buffer.alloc(70_000)), pong, begun, pong]);
  const whole = new IncomingFrames();
  whole.take(all);
  for (let round = 0; round < 200; round++) {
    const frames = new IncomingFrames();
    let pieces = 0;
    for (let at = 0; at < all.length; pieces++) {
      const end = at + 1 + random.integer(0, random.integer(0, 20_000));
      frames.take(all.subarray(at, end));
      at = end;
    }
    expect(frames.incompleteBytes).toBeGreaterThanOrEqual(whole.incompleteBytes);
    expect(frames.incompleteBytes).toBeLessThanOrEqual(whole.incompleteBytes + pieces * least);
    frames.take(frame('continuation', Buffer.alloc(0)));
    expect(frames.incompleteBytes).toBe(0);
  }
});

test('a length beyond all numbers is no reason to fail', () => {
  const frames = new IncomingFrames();
  frames.take(Buffer.from([0x82, 0xff, ...Array(8).fill(0xff), 1, 2, 3, 4, 5]));
  expect(frames.incompleteBytes).toBeGreaterThan(0);
});
