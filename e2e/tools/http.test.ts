import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { httpGet } from './http.ts';
import { FileServer, status } from './testing/file-server.ts';

let server: FileServer;
beforeEach(async () => {
  for (const variable of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']) {
    vi.stubEnv(variable, undefined).stubEnv(variable.toLowerCase(), undefined);
  }
  server = await FileServer.start({ '/file': 'content' });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

const textOf = (url: string, silenceMs?: number) =>
  httpGet(url, { silenceMs }, ({ body }) => body.toArray().then(String));

it('goes on at once where a redirect leads, whatever comes with the redirect', async () => {
  // A byte now and then, for ever: it is never silent.
  server.next((_request, response) => {
    response.writeHead(302, { location: '/file' });
    const more = setInterval(() => response.write('x'), 20);
    response.once('close', () => clearInterval(more));
  });
  expect(await textOf(`${server.url}/redirect`)).toBe('content');
  expect(server.asked).toEqual(['/redirect', '/file']);
});

it.each(['file:///etc/passwd', 'ftp://127.0.0.1/file', 'http://'])(
  'does not follow a redirect to %s',
  async (location) => {
    server.next(status(302, { location }));
    await expect(textOf(`${server.url}/redirect`)).rejects.toThrow('its redirect leads nowhere');
  },
);

it('does not follow a redirect from HTTPS to HTTP', async () => {
  const authority = await createAuthority({ commonName: 'test', algorithm: 'p256' });
  const { key, certificate: cert } = await issueCertificate({
    authority,
    commonName: '127.0.0.1',
    hosts: ['127.0.0.1'],
    usages: ['server'],
    algorithm: 'p256',
  });
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, authority.certificate]);
  const secure: Server = createServer({ key, cert }, (request, response) => {
    const location = request.url === '/within' ? '/without' : `${server.url}/file`;
    response.writeHead(302, { location }).end();
  });
  try {
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/within`;
    await expect(textOf(url)).rejects.toThrow('it redirects from HTTPS to HTTP');
    expect(server.asked).toEqual([]);
  } finally {
    secure.close();
    setDefaultCACertificates(trusted);
  }
});
