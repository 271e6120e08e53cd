import { describe, expect, test } from 'vitest';
import { isDnsLabel } from '../base/index.ts';
import { AuthError, checkPairing, createAuthMethod, GoExpression, parseAuth } from './index.ts';
import { authError, peer, request } from './testing/peers.ts';

describe('--auth', () => {
  test.each([
    ['mtls:subject:CN=([^,]+)', { method: 'mtls', source: 'subject', pattern: new GoExpression('CN=([^,]+)') }],
    ['mtls:CN=([^,]+)', { method: 'mtls', source: 'subject', pattern: new GoExpression('CN=([^,]+)') }],
    [
      'mtls:uri:spiffe://[^/]+/(.+)',
      { method: 'mtls', source: 'uri', pattern: new GoExpression('spiffe://[^/]+/(.+)') },
    ],
    [
      'mtls:(?i)cn=(?P<name>[[:alnum:]-]+)\\z',
      { method: 'mtls', source: 'subject', pattern: new GoExpression('(?i)cn=(?P<name>[[:alnum:]-]+)\\z') },
    ],
    ['userpass:/etc/users:x', { method: 'userpass', file: '/etc/users:x' }],
    [
      'header: X-Forwarded-User : ^(.*)$',
      { method: 'header', header: 'x-forwarded-user', pattern: new GoExpression('^(.*)$') },
    ],
  ])('%s', (text, choice) => {
    expect(parseAuth(text)).toEqual(choice);
  });

  test.each([
    ['', 'invalid auth string'],
    ['mtls', 'invalid auth string'],
    ['oidc:x', 'unknown auth method: oidc'],
    ['mtls:CN=[', 'is not a regular expression'],
    ['mtls:', 'no group'],
    ['mtls:subject:CN=.*', 'no group'],
    ['header:name', 'header:<name>:<re>'],
    ['userpass:', 'path of a file'],
  ])('%s is refused', (text, message) => {
    expect(() => parseAuth(text)).toThrow(
      expect.objectContaining({ code: 'configuration', message: expect.stringContaining(message) }),
    );
  });

  test.each([
    ['(?i)cn=(?P<name>[[:alnum:]-]+)\\z', 'CN=edge-1', 'edge-1'],
    ['(?i:cn)=(?<name>\\pL+)', 'O=x,CN=Zürich', 'Zürich'],
    ['\\QCN=(\\E([^)]+)', 'CN=(edge)', 'edge'],
    ['(?U)CN=(.+),', 'CN=a,O=b,C=c', 'a'],
    ['CN=(.+)$', 'CN=a\n', undefined],
    ['(?m)^CN=(.+)$', 'O=x\nCN=a\n', 'a'],
    ['CN=(x)?', 'CN=a', undefined],
  ])('%s means what it means to Go', (source, text, found) => {
    expect(new GoExpression(source).firstGroup(text)).toBe(found);
  });

  test.each(['(?=a)(b)', '(?<!a)(b)', '(a)\\1', '(a){1001}'])('%s is refused, as by Go', (source) => {
    expect(() => parseAuth(`mtls:${source}`)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });

  test('no text makes an expression take long', async () => {
    const method = await createAuthMethod(parseAuth('header:x-agent:^(([a-z]+)+)$'));
    for (const value of [`${'a'.repeat(4_000)}!`, 'a'.repeat(100_000)]) {
      await expect(method.authenticate(request, peer({ headers: { 'x-agent': value } }))).rejects.toEqual(
        authError('bad-credentials'),
      );
    }
  });

  test('a method must fit the listener', () => {
    expect(() => checkPairing(parseAuth('mtls:(.*)'), { plaintext: true })).toThrow(AuthError);
    expect(() => checkPairing(parseAuth('header:a:(.*)'), { plaintext: false })).toThrow(AuthError);
    expect(() => checkPairing(parseAuth('userpass:f'), { plaintext: true })).not.toThrow();
  });
});

test('a header that a proxy sets', async () => {
  const method = await createAuthMethod(parseAuth('header:X-Client:^agent-(.+)$'));
  expect(await method.authenticate(request, peer({ headers: { 'x-client': 'agent-c1' } }))).toEqual({ agent: 'c1' });
  await expect(method.authenticate(request, peer())).rejects.toEqual(authError('no-credentials'));
  await expect(method.authenticate(request, peer({ headers: { 'x-client': 'c1' } }))).rejects.toEqual(
    authError('bad-credentials'),
  );
  await expect(method.authenticate(request, peer({ headers: { 'x-client': 'agent-C1' } }))).rejects.toEqual(
    authError('bad-name'),
  );
});

test.each([
  ['a', true],
  ['a-1', true],
  ['-a', false],
  ['a.b', false],
  ['A', false],
  ['', false],
  ['a'.repeat(64), false],
])('DNS label %s: %s', (name, is) => {
  expect(isDnsLabel(name)).toBe(is);
});
