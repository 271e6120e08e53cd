import { expect, test } from 'vitest';
import { Random } from '../../../e2e/random/index.ts';
import { liveMemory } from '../../base/testing.ts';
import { FrameReader, frameMessage } from './frames.ts';
import { grpcStatus } from './status.ts';

const options = { maxBytes: 16 * 1024 * 1024, gzip: false };

test('messages are read whatever pieces they come in', () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = new Random(seed);
  for (let run = 0; run < 200; run++) {
    const messages = Array.from({ length: random.integer(1, 5) }, () =>
      Buffer.alloc(random.pick([0, 1, 100, 4_095, 4_096, 20_000]), random.integer(0, 255)),
    );
    const bytes = Buffer.concat(messages.map((message) => frameMessage(message, false)));
    const reader = new FrameReader(options);
    const read: Buffer[] = [];
    for (let from = 0; from < bytes.length; ) {
      const to = from + random.pick([64, 100, 4_000, 4_096, 9_000]);
      reader.push(bytes.subarray(from, to));
      from = to;
      if (random.chance(0.8) || from >= bytes.length) {
        for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
          read.push(frame.payload);
        }
      }
    }
    expect(Buffer.concat(read).equals(Buffer.concat(messages)), `SEED=${seed}`).toBe(true);
    expect(read.map(({ length }) => length)).toEqual(messages.map(({ length }) => length));
    expect(reader.bufferedBytes).toBe(0);
  }
});

test('an unfinished message takes no more memory than it has bytes, in pieces of any size', () => {
  const reader = new FrameReader(options);
  const count = 500_000;
  const held = () => Object.values(liveMemory()).reduce((sum, bytes) => sum + bytes, 0);
  const before = held();
  const pieces = Buffer.alloc(1_000);
  for (let index = 0; index < count; index++) {
    reader.push(pieces.subarray(index % 1_000, (index % 1_000) + 1));
  }
  expect(held() - before).toBeLessThan(10 * count);
  expect(reader.bufferedBytes).toBe(count);
});

test('a message in pieces of a few bytes is refused before it has cost much time', () => {
  const refused = expect.objectContaining({ code: grpcStatus.invalidArgument });
  const send = (pieceBytes: number) => {
    const bytes = frameMessage(Buffer.alloc(1024 * 1024), false);
    const reader = new FrameReader(options);
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      reader.push(bytes.subarray(from, from + pieceBytes));
      const frame = reader.next();
      if (frame !== undefined) {
        return frame.payload.length;
      }
    }
    return undefined;
  };
  expect(() => send(1)).toThrow(refused);
  expect(() => send(32)).toThrow(refused);
  expect(send(64)).toBe(1024 * 1024);
});
