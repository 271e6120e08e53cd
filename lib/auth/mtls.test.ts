import { describe, expect, test } from 'vitest';
import {
  authenticateWith,
  checkToken,
  commonNameOf,
  createAuthMethod,
  fingerprintOf,
  GoExpression,
  headerMethod,
  mtlsMethod,
  parseAuth,
  parseUserDatabase,
  subjectOf,
  userpassMethod,
} from './index.ts';
import { authError, certificateOf, peer, request } from './testing/peers.ts';

describe('client certificates', () => {
  test('the subject reads as Go prints it', async () => {
    const certificate = await certificateOf([
      { C: ['DE'] },
      { '1.2.3.4': ['odd'] },
      { O: ['A, B'] },
      { CN: ['first'] },
      { O: ['C'] },
      { OU: [' x#'] },
      { CN: ['cluster1'] },
      { '2.5.4.5': ['7'] },
    ]);
    expect(subjectOf(certificate)).toBe('SERIALNUMBER=7,CN=cluster1,OU=\\ x#,O=A\\, B+O=C,C=DE,1.2.3.4=#13036f6464');
  });

  test.each([0, 1, 100, 127, 128, 300])(
    'a subject is found in a certificate whatever its length (%i)',
    async (length) => {
      const long = 'x'.repeat(length);
      const certificate = await certificateOf(
        [...(length === 0 ? [] : [{ O: [long] }]), { CN: ['cluster1'] }],
        ['https://x/'],
      );
      expect(subjectOf(certificate)).toBe(length === 0 ? 'CN=cluster1' : `CN=cluster1,O=${long}`);
      expect(commonNameOf(certificate)).toBe('cluster1');
    },
  );

  test('the first group of the expression is the agent', async () => {
    const certificate = await certificateOf([{ O: ['fleet'] }, { CN: ['cluster1'] }], ['https://x/', 'spiffe://td/c2']);
    const bySubject = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+),O=fleet') });
    expect(await bySubject.authenticate(request, peer({ certificate }))).toEqual({ agent: 'cluster1' });
    const byUri = mtlsMethod({ source: 'uri', pattern: new GoExpression('^spiffe://td/(.+)$') });
    expect(await byUri.authenticate(request, peer({ certificate }))).toEqual({ agent: 'c2' });
    await expect(bySubject.authenticate(request, peer())).rejects.toEqual(authError('no-credentials'));
    const elsewhere = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+),O=other') });
    await expect(elsewhere.authenticate(request, peer({ certificate }))).rejects.toEqual(authError('bad-credentials'));
    const whole = mtlsMethod({ source: 'subject', pattern: new GoExpression('(.*)') });
    await expect(whole.authenticate(request, peer({ certificate }))).rejects.toEqual(authError('bad-name'));
  });

  test('a blocked certificate is refused', async () => {
    const certificate = await certificateOf([{ CN: ['cluster1'] }]);
    const blocked = new Set([fingerprintOf(certificate)]);
    expect([...blocked][0]).toMatch(/^[0-9A-F]{64}$/);
    const method = mtlsMethod({
      source: 'subject',
      pattern: new GoExpression('CN=([^,]+)'),
      isRevoked: (fingerprint) => blocked.has(fingerprint),
    });
    await expect(method.authenticate(request, peer({ certificate }))).rejects.toEqual(authError('revoked'));
    blocked.clear();
    expect(await method.authenticate(request, peer({ certificate }))).toEqual({ agent: 'cluster1' });
  });

  test('another method than the configured one is refused', async () => {
    const method = await createAuthMethod(parseAuth('mtls:CN=(.*)'));
    await expect(authenticateWith(method, { ...request, method: 'userpass' }, peer())).rejects.toEqual(
      authError('unknown-method'),
    );
  });
});

test('a token counts only on a connection that is not somebody else', async () => {
  const token = { agent: 'one', mode: 'managed' } as const;
  const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
  const holder = (name: string) => certificateOf([{ CN: [name] }]);
  await checkToken(mtls, token, peer({ certificate: await holder('one') }));
  const other = peer({ certificate: await holder('two') });
  await expect(checkToken(mtls, token, other)).rejects.toThrow(authError('wrong-certificate'));
  await expect(checkToken(mtls, token, other)).rejects.toThrow(
    'The token is of agent one, the client certificate of agent two',
  );
  await expect(checkToken(mtls, token, peer())).rejects.toThrow(authError('no-credentials'));

  const header = headerMethod({ header: 'x-agent', pattern: new GoExpression('^(.+)$') });
  await checkToken(header, token, peer({ headers: { 'x-agent': 'one' } }));
  await checkToken(header, token, peer());
  await expect(checkToken(header, token, peer({ headers: { 'x-agent': 'two' } }))).rejects.toThrow(
    authError('wrong-certificate'),
  );
  const users = userpassMethod(parseUserDatabase(''));
  await expect(checkToken(users, token, peer())).rejects.toThrow(authError('bad-credentials'));
});
