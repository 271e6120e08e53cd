import { expect, test } from 'vitest';
import { resourceResponse } from './index.ts';

test.each([100, 101, 103, 199, 600, 200.5, Number.NaN])(
  'an answer of an agent with status %d is refused: a client would wait for another one',
  (status) => {
    expect(resourceResponse.safeParse({ uuid: 'u', status, resource: '' }).success).toBe(false);
    expect(resourceResponse.safeParse({ uuid: 'u', status: 204, resource: '' }).success).toBe(true);
  },
);
