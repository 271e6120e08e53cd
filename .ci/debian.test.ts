import { expect, test } from 'vitest';
import { whatDebianHas } from './debian.ts';

test('tests that lack nothing but what Debian has are run by their tags and files, each package once', () => {
  const reason = 'x';
  expect(
    whatDebianHas([
      { file: 'a.test.ts', missing: ['prometheus'], reason },
      { file: 'a.test.ts', missing: ['prometheus', 'jq'], reason },
      { file: 'b.test.ts', missing: ['chromium'], reason },
      { file: 'c.test.ts', missing: ['prometheus', 'velero'], reason },
      { file: 'd.test.ts', missing: [], reason },
    ]),
  ).toEqual({
    count: 3,
    files: ['a.test.ts', 'b.test.ts'],
    tags: ['prometheus', 'jq', 'chromium'],
    packages: ['prometheus', 'jq', 'chromium', 'fonts-liberation'],
  });
});
