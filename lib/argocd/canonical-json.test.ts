import { expect, test } from 'vitest';
import { canonicalJson } from '../base/index.ts';
import { resourceListChecksum, specChecksum } from './index.ts';

const spec = {
  project: 'default',
  source: { repoURL: 'https://example.com/r.git', path: 'guestbook', targetRevision: '>=1.0 & <2.0' },
  destination: { name: 'in-cluster', namespace: 'guestbook' },
};

test('writes what Go writes', () => {
  const { destination: _, ...rest } = spec;
  expect(canonicalJson(rest)).toBe(
    '{"project":"default","source":{"path":"guestbook","repoURL":"https://example.com/r.git","targetRevision":"\\u003e=1.0 \\u0026 \\u003c2.0"}}',
  );
});

test.each([
  ['numbers', [0, -1, 1.5, 1e21, 1e-7, 123456789012345], '[0,-1,1.5,1e+21,1e-7,123456789012345]'],
  ['strings', ['\b\f\n\r\t\u0001"\\/é\u2028\u2029'], '["\\b\\f\\n\\r\\t\\u0001\\"\\\\/é\\u2028\\u2029"]'],
  ['keys by their bytes', { '￿': 1, '😀': 2, b: 3, a: undefined, Z: 4 }, '{"Z":4,"b":3,"￿":1,"😀":2}'],
  ['nothing', [null, true, {}, []], '[null,true,{},[]]'],
])('%s', (_, value, text) => expect(canonicalJson(value)).toBe(text));

test('the spec checksum leaves out the destination', () => {
  expect(specChecksum(spec)).toBe('GXN1r3AGOU6elbYAz7e3f/EWw1MRlNEo/jmrAfQgYdE=');
  expect(Buffer.from(specChecksum({}), 'base64').toString('hex')).toBe(
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
  );
});

test('the list checksum is over sorted keys, and null for nothing', () => {
  const resources = [
    { kind: 'GPGKey', name: 'argocd-gpg-keys-cm', uid: 'uid-3' },
    { kind: 'Application', name: 'guestbook', uid: 'uid-1' },
    { kind: 'AppProject', name: 'default', uid: 'uid-2' },
  ];
  expect(resourceListChecksum(resources)).toBe('CqBMR2j1dwsbztQ/T7Za3udgKFNDAjrsAKBdazEL1XI=');
  expect(resourceListChecksum([])).toBeNull();
});
