import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority, issueCertificate } from '../../../lib/pki/index.ts';
import { identifyViewer, type PageCaller, type TrustedProxies } from './page-viewers.ts';

const argo = { settings: {}, secrets: {} };
const none: TrustedProxies = { loopback: false, names: new Set() };

function who(
  headers: Readonly<Record<string, string>>,
  proxies: TrustedProxies,
  from: Partial<Pick<PageCaller, 'address' | 'certificate'>> = {},
) {
  const caller = { address: '10.0.0.9', certificate: undefined, ...from, header: (name: string) => headers[name] };
  return identifyViewer(caller, { proxies, argo, isRevoked: async () => false });
}

const headers = { 'x-forwarded-user': 'zoe@example.com', 'x-forwarded-groups': 'ops, dev,,role:admin,admin' };
const refused = { name: 'TokenRefusedError' };

test('only a trusted proxy names the viewer, and never an account or role of Argo CD itself', async () => {
  const loopback = { loopback: true, names: new Set<string>() };
  const zoe = { name: 'zoe@example.com', groups: ['ops', 'dev'], expires: undefined };
  for (const address of ['127.0.0.1', '::1', '127.4.4.4']) {
    expect(await who(headers, loopback, { address })).toEqual(zoe);
    await expect(who(headers, none, { address })).rejects.toMatchObject(refused);
  }
  for (const address of ['10.0.0.9', '127.0.0.1.example.com', '', '::2']) {
    await expect(who(headers, loopback, { address }), address).rejects.toMatchObject(refused);
  }
  for (const name of ['admin', 'role:admin', 'proj:default:x', 'x'.repeat(300)]) {
    await expect(who({ 'x-forwarded-user': name }, loopback, { address: '::1' }), name).rejects.toMatchObject(refused);
  }
});

test('a proxy proves itself by the common name or a DNS name of its certificate', async () => {
  const authority = await createAuthority({ commonName: 'proxies' });
  const certificate = async (commonName: string, ...hosts: string[]) => {
    const issued = await issueCertificate({ authority, commonName, hosts, usages: ['client'] });
    return new X509Certificate(issued.certificate);
  };
  const proxies = { loopback: false, names: new Set(['oauth2-proxy']) };
  const zoe = { name: 'zoe@example.com', groups: ['ops', 'dev'] };
  expect(await who(headers, proxies, { certificate: await certificate('oauth2-proxy') })).toMatchObject(zoe);
  expect(await who(headers, proxies, { certificate: await certificate('x', 'a', 'oauth2-proxy') })).toMatchObject(zoe);
  for (const other of [await certificate('agent-7'), await certificate('x', 'oauth2-proxy.example.com')]) {
    await expect(who(headers, proxies, { certificate: other })).rejects.toMatchObject(refused);
  }
  await expect(who({}, proxies, { certificate: await certificate('oauth2-proxy') })).rejects.toMatchObject(refused);
});

test('nobody becomes a local account of Argo CD, nor a group that is one', async () => {
  const accounts = {
    settings: { 'accounts.alice': 'login', 'accounts.robot': 'apiKey', 'accounts.former.enabled': 'false' },
    secrets: { 'accounts.old.passwordMtime': 'x' },
  };
  const proxies = { loopback: true, names: new Set<string>() };
  const asks = (user: string, groups = '') => {
    const given: Readonly<Record<string, string>> = { 'x-forwarded-user': user, 'x-forwarded-groups': groups };
    const caller = { address: '::1', certificate: undefined, header: (name: string) => given[name] };
    return identifyViewer(caller, { proxies, argo: accounts, isRevoked: async () => false });
  };
  for (const name of ['alice', 'robot', 'former', 'old', 'admin']) {
    await expect(asks(name), name).rejects.toMatchObject(refused);
  }
  expect(await asks('alice@example.com', 'alice,ops,robot,former,old')).toMatchObject({ groups: ['ops'] });
  expect(await asks('ali'), 'the beginning of a name is no name').toMatchObject({ name: 'ali' });
});
