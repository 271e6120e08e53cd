import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { RepositorySecret } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import { repositoryProblem } from '../doctor/repository-form.ts';

function secretOf(
  type: 'repository' | 'repo-creds',
  fields: Readonly<Record<string, string>>,
): Secret & RepositorySecret {
  const data = Object.entries(fields).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
  return {
    metadata: { name: `a-${type}`, namespace: 'argocd', labels: { [wellKnown.secretTypeLabel]: type } },
    data: Object.fromEntries(data),
  };
}

const ed25519 = generateKeyPairSync('ed25519');
const pkcs8 = ed25519.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const locked = ed25519.privateKey
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
  .toString();

/** The beginning of a key as ssh-keygen writes it, with the name of its cipher. */
function openSsh(cipher: string): string {
  const name = Buffer.from(cipher);
  const body = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    Buffer.from([0, 0, 0, name.length]),
    name,
    Buffer.alloc(40),
  ]);
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${body.toString('base64')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

const https = 'https://git.example.com/team/shop.git';
const ssh = 'git@git.example.com:team/shop.git';

test.each<[string, Record<string, string>]>([
  ['a public one', { url: https }],
  ['user and password', { url: https, username: 'a', password: 'b' }],
  ['a password alone, as tokens are given', { url: https, password: 'b' }],
  ['a token', { url: https, bearerToken: 'b' }],
  ['a GitHub app', { url: https, githubAppID: '1', githubAppPrivateKey: pkcs8 }],
  ['a client certificate', { url: https, tlsClientCertData: 'a', tlsClientCertKey: 'b' }],
  ['a key for SSH', { url: ssh, sshPrivateKey: pkcs8 }],
  ['a key of ssh-keygen', { url: 'ssh://git@git.example.com:22/shop', sshPrivateKey: openSsh('none') }],
  ['Azure', { url: 'git@ssh.dev.azure.com:v3/a/b/c', sshPrivateKey: pkcs8 }],
  ['a folder', { url: 'file:///srv/shop' }],
  ['Helm', { url: 'https://charts.example.com', type: 'helm' }],
  ['Helm from a registry', { url: 'registry.example.com:5000/charts', type: 'helm', enableOCI: 'true' }],
  ['OCI', { url: 'oci://registry.example.com/shop', type: 'oci' }],
])('nothing is wrong with %s', (_, fields) => {
  expect(repositoryProblem(secretOf('repository', fields), [])).toBeUndefined();
});

test.each<[string, Record<string, string>, RegExp]>([
  ['no address', {}, /^repository-invalid url has no url$/],
  ['an address of spaces', { url: '  ' }, /^repository-invalid url has no url$/],
  ['a host without a scheme', { url: 'git.example.com/shop' }, /^repository-invalid url has a url that is no address/],
  ['a scheme without a host', { url: 'https://' }, /^repository-invalid url/],
  ['Helm with an address of Git', { url: ssh, type: 'helm' }, /^repository-invalid url .*enableOCI/],
  ['OCI without its scheme', { url: 'registry.example.com/x', type: 'oci' }, /^repository-invalid url/],
  ['another type', { url: https, type: 'svn' }, /^repository-invalid type has the type "svn"/],
  ['SSH without a key', { url: ssh, password: 'x' }, /^repository-incomplete sshPrivateKey/],
  ['a user without a password', { url: https, username: 'x' }, /^repository-incomplete password/],
  ['half a client certificate', { url: https, tlsClientCertData: 'x' }, /^repository-incomplete tlsClientCertKey/],
  ['a GitHub app without its number', { url: https, githubAppPrivateKey: 'x' }, /^repository-incomplete githubAppID/],
  ['a key that is none', { url: ssh, sshPrivateKey: 'x' }, /^repository-invalid sshPrivateKey .*no private key in PEM/],
  [
    'a key that is broken',
    { url: ssh, sshPrivateKey: pkcs8.replace(/\n.{20}/, '\n') },
    /sshPrivateKey .*cannot be read/,
  ],
  ['a key with a passphrase', { url: ssh, sshPrivateKey: locked }, /^repository-invalid sshPrivateKey .*passphrase/],
  ['a key of ssh-keygen with a passphrase', { url: ssh, sshPrivateKey: openSsh('aes256-ctr') }, /passphrase/],
  ['a service account that is no JSON', { url: https, gcpServiceAccountKey: '{' }, /gcpServiceAccountKey .*not JSON/],
])('%s is told, without the address', (_, fields, expected) => {
  const problem = repositoryProblem(secretOf('repository', fields), []);
  const text = `${problem?.id} ${problem?.field} ${problem?.what}`;
  expect(text).toMatch(expected);
  expect(text).not.toContain('git.example.com');
});

test('a template of credentials counts for addresses that begin like its own', () => {
  const template = secretOf('repo-creds', { url: 'git@git.example.com:team', sshPrivateKey: pkcs8 });
  expect(repositoryProblem(template, [])).toBeUndefined();
  expect(repositoryProblem(secretOf('repository', { url: ssh }), [template])).toBeUndefined();
  const other = secretOf('repository', { url: 'git@git.example.com:other/shop.git' });
  expect(repositoryProblem(other, [template])).toMatchObject({ id: 'repository-incomplete' });
  const wrong = secretOf('repo-creds', { url: 'git@git.example.com:team', password: 'x' });
  expect(repositoryProblem(secretOf('repository', { url: ssh }), [wrong])?.what).toContain('nor has the template');
  expect(repositoryProblem(secretOf('repo-creds', { url: 'https://git.example.com' }), [])).toMatchObject({
    id: 'repository-incomplete',
    field: 'password',
  });
});
