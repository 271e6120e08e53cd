import { expect, test } from 'vitest';
import { detailOf, parseDetail } from './index.ts';

test('categories are read without regard to case; unknown ones are named', () => {
  const warnings: object[] = [];
  const logger = { warn: (fields: object) => void warnings.push(fields) };
  expect([...parseDetail(['Events', ' actions', ''], logger)]).toEqual(['events', 'actions']);
  expect(parseDetail(['all'], logger).size).toBe(3);
  expect(warnings).toEqual([]);
  expect(parseDetail(['everything'], logger).size).toBe(0);
  expect(warnings).toEqual([expect.objectContaining({ category: 'everything' })]);
});

test('the contents of a Secret are never shown', () => {
  const secret = { metadata: { name: 's' }, data: { password: 'c2VjcmV0' } };
  expect(detailOf(secret, 'Secret')).toBe('<redacted: Secret>');
  expect(detailOf({ kind: 'Secret', ...secret })).toBe('<redacted: Secret>');
  expect(detailOf(secret, 'ConfigMap')).toBe(secret);
});
