import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { secureContextOptions } from './grpc/server/tls-options.ts';
import { asksForCipherSuites, cipherSuiteCatalogue, parseTlsSettings } from './index.ts';
import { createTestCa } from './testing/certificates.ts';

const parse = (minVersion: string, maxVersion = '', ...cipherSuites: string[]) =>
  parseTlsSettings({ minVersion, maxVersion, cipherSuites });

test.each([
  ['tls1.0', '', [], 'TLS version tls1.0 is not supported'],
  ['tls1.3', 'tls1.2', [], 'minimum TLS version (tls1.3) cannot be higher than maximum TLS version (tls1.2)'],
  ['', '', ['TLS_RSA_WITH_RC4_128_SHA'], 'no such cipher suite: TLS_RSA_WITH_RC4_128_SHA'],
  ['', '', ['ECDHE-RSA-AES128-GCM-SHA256'], 'no such cipher suite: ECDHE-RSA-AES128-GCM-SHA256'],
  [
    'tls1.3',
    '',
    ['TLS_AES_128_GCM_SHA256', 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
    'cipher suite TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is not supported by minimum TLS version tls1.3',
  ],
  [
    'tls1.2',
    '',
    ['TLS_AES_128_GCM_SHA256'],
    'cipher suite TLS_AES_128_GCM_SHA256 is not supported by minimum TLS version tls1.2',
  ],
  [
    'tls1.1',
    '',
    ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
    'cipher suite TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is not supported by minimum TLS version tls1.1',
  ],
])('%s to "%s" with %j is refused', (min, max, suites, message) => {
  expect(() => parse(min, max, ...suites)).toThrow(new RangeError(message));
});

test('without flags nothing is set', () => {
  expect(parse('', '', '')).toEqual({});
  expect(parse('tls1.3')).toEqual({ minVersion: 'TLSv1.3' });
});

test('the catalogue', () => {
  expect(asksForCipherSuites(['list'])).toBe(true);
  expect(asksForCipherSuites(['list', 'x'])).toBe(false);
  const lines = cipherSuiteCatalogue().trim().split('\n');
  expect(lines).toHaveLength(13);
  expect(lines).toContainEqual(expect.stringMatching(/^TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA +tls1.0, tls1.1, tls1.2$/));
});

test.each([
  [['', ''], ['', ''], 'TLSv1.3', /AES/],
  [['tls1.2', 'tls1.2', 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'], ['', ''], 'TLSv1.2', /CHACHA20/],
  [['tls1.2', '', 'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA'], ['', 'tls1.2'], 'TLSv1.2', /AES_256_CBC_SHA$/],
  [['tls1.2', '', 'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA'], ['', ''], 'TLSv1.3', /AES/],
  [['tls1.3', '', 'TLS_CHACHA20_POLY1305_SHA256'], ['', ''], 'TLSv1.3', /CHACHA20/],
  [['tls1.1', ''], ['tls1.1', 'tls1.1'], 'TLSv1.1', /CBC_SHA$/],
  [['', ''], ['tls1.1', 'tls1.1'], undefined, undefined],
  [['tls1.3', ''], ['', 'tls1.2'], undefined, undefined],
])('a server with %j and a client with %j agree on %s', async (serverFlags, clientFlags, version, cipher) => {
  const ca = await createTestCa();
  const material = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  const [min = '', max = '', ...suites] = serverFlags;
  const server = createServer(secureContextOptions({ ...material, ...parse(min, max, ...suites) }));
  server.on('tlsClientError', () => undefined);
  server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const [clientMin = '', clientMax = ''] = clientFlags;
  const client = connect({ host: '127.0.0.1', port, ca: ca.cert, ...parse(clientMin, clientMax) });
  const agreed = await once(client, 'secureConnect').then(
    () => [client.getProtocol(), client.getCipher().standardName],
    () => undefined,
  );
  client.destroy();
  server.close();
  if (version === undefined) {
    expect(agreed).toBeUndefined();
  } else {
    expect(agreed).toEqual([version, expect.stringMatching(cipher ?? /./)]);
  }
});
