import { expect, test } from 'vitest';
import { proxyFromEnvironment } from './proxy.ts';

const at = (environment: Record<string, string>, host = 'hub.example.com', port = 443) =>
  proxyFromEnvironment(environment, { scheme: 'https', host, port })?.href;

test('which variable counts', () => {
  const target = { host: 'hub.example.com', port: 443 };
  const environment = { HTTPS_PROXY: 'http://one:1', https_proxy: 'http://two:2', HTTP_PROXY: 'http://three:3' };
  expect(proxyFromEnvironment(environment, { ...target, scheme: 'https' })?.port).toBe('1');
  expect(proxyFromEnvironment(environment, { ...target, scheme: 'http' })?.port).toBe('3');
  expect(at({ https_proxy: 'http://two:2' })).toBe('http://two:2/');
  expect(at({ HTTPS_PROXY: '' })).toBeUndefined();
  expect(at({})).toBeUndefined();
});

test('forms of a proxy', () => {
  expect(at({ HTTPS_PROXY: 'proxy.example.com:3128' })).toBe('http://proxy.example.com:3128/');
  expect(at({ HTTPS_PROXY: 'proxy' })).toBe('http://proxy/');
  expect(at({ HTTPS_PROXY: 'https://me:secret@proxy:8443' })).toBe('https://me:secret@proxy:8443/');
  expect(() => at({ HTTPS_PROXY: 'socks5://proxy:1080' })).toThrow('a proxy of the kind socks5');
  const secret = 'http://me:secret@proxy:99999';
  expect(() => at({ HTTPS_PROXY: secret })).toThrow(/^HTTPS_PROXY holds no URL$/);
});

test.each([
  ['', 'localhost', false],
  ['', 'LOCALHOST', false],
  ['', '127.0.0.1', false],
  ['', '127.8.8.8', false],
  ['', '::1', false],
  ['', '10.0.0.1', true],
  ['*', 'hub.example.com', false],
  ['other, *', 'hub.example.com', false],
  ['example.com', 'hub.example.com', false],
  ['example.com', 'example.com', false],
  ['EXAMPLE.com', 'Hub.Example.Com', false],
  ['example.com', 'notexample.com', true],
  ['.example.com', 'hub.example.com', false],
  ['.example.com', 'example.com', true],
  ['*.example.com', 'hub.example.com', false],
  ['*.example.com', 'example.com', true],
  ['hub.example.com:443', 'hub.example.com', false],
  ['hub.example.com:8443', 'hub.example.com', true],
  [' a , hub.example.com ,b', 'hub.example.com', false],
  [',,', 'hub.example.com', true],
  ['10.0.0.0/8', '10.1.2.3', false],
  ['10.0.0.0/8', '11.1.2.3', true],
  ['10.0.0.0/8', 'hub.example.com', true],
  ['10.1.2.3', '10.1.2.3', false],
  ['10.1.2.3:443', '10.1.2.3', false],
  ['10.1.2.3:80', '10.1.2.3', true],
  ['fd00::/8', 'fd12::1', false],
  ['fd12::1', 'fd12:0::1', false],
  ['[fd12::1]:443', 'fd12::1', false],
  ['[fd12::1]:80', 'fd12::1', true],
  [':443', 'hub.example.com', true],
])('NO_PROXY "%s" and %s: through the proxy %s', (list, host, isProxied) => {
  expect(at({ HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: list }, host)).toBe(
    isProxied ? 'http://proxy:3128/' : undefined,
  );
  expect(at({ HTTPS_PROXY: 'http://proxy:3128', no_proxy: list }, host)).toBe(
    isProxied ? 'http://proxy:3128/' : undefined,
  );
});
