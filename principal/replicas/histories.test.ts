import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { effort } from '../../lib/base/testing.ts';
import { tellHistory } from './testing/history.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const first = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 30));
const count = Number(process.env.HISTORIES ?? (process.env.SEED === undefined ? effort(3, 300) : 1));

test(`no two replicas write for one agent, and in the end one serves each (SEED=${first}, ${count} histories)`, async () => {
  for (let seed = first; seed < first + count; seed++) {
    const pass = async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms));
    expect(await tellHistory({ seed, steps: 30, pass }), `SEED=${seed}`).toEqual([]);
  }
}, 600_000);
