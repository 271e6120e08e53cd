import { afterEach, expect, test, vi } from 'vitest';
import { effort } from './effort.ts';

afterEach(() => void vi.unstubAllEnvs());

test('is full only where it is asked for', () => {
  vi.stubEnv('THOROUGH', undefined);
  expect(effort(2, 10)).toBe(2);
  vi.stubEnv('THOROUGH', '0');
  expect(effort(2, 10)).toBe(2);
  vi.stubEnv('THOROUGH', '1');
  expect(effort(2, 10)).toBe(10);
});
