import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tarOf } from '../../lib/base/index.ts';
import { growth } from '../../lib/base/testing.ts';
import { redacted, redactText } from '../bundle/redact.ts';

test('tar reads the archive', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bundle-'));
  try {
    const path = join(folder, 'a.tar');
    await writeFile(
      path,
      tarOf(
        [
          { path: 'hub/a.json', content: 'ä'.repeat(300) },
          { path: 'b', content: '' },
        ],
        new Date(),
      ),
    );
    expect(execFileSync('tar', ['tf', path], { encoding: 'utf8' })).toBe('hub/a.json\nb\n');
    expect(execFileSync('tar', ['xOf', path, 'hub/a.json'], { encoding: 'utf8' })).toBe('ä'.repeat(300));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('nothing secret stays', () => {
  const secret = {
    kind: 'Secret',
    metadata: {
      name: 'x',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2', note: 'stays' },
      managedFields: [],
    },
    data: { 'tls.key': Buffer.from('hunter2').toString('base64') },
    stringData: { other: 'hunter2' },
  };
  const text = JSON.stringify(redacted(secret));
  expect(text).not.toContain('hunter2');
  expect(text).not.toContain(secret.data['tls.key']);
  expect(text).toContain('7 bytes');
  expect(text, 'annotations may hold anything').not.toContain('stays');

  const deployment = {
    kind: 'Deployment',
    metadata: { name: 'x' },
    spec: {
      env: [
        { name: 'REDIS_PASSWORD', value: 'hunter2' },
        { name: 'ADDRESS', value: 'redis://user:hunter2@host:1' },
      ],
      volumes: [{ secret: { secretName: 'argocd-redis' } }],
    },
  };
  const shown = JSON.stringify(redacted(deployment));
  expect(shown).not.toContain('hunter2');
  expect(shown).toContain('"secretName":"argocd-redis"');
  expect(shown).toContain('"name":"ADDRESS"');
  const config = { kind: 'ConfigMap', metadata: { name: 'x' }, data: { 'principal.redis.password': 'hunter2' } };
  expect(JSON.stringify(redacted(config))).not.toContain('hunter2');

  expect(redactText('Authorization: Bearer abcdefghijk')).not.toContain('abcdefghijk');
  expect(redactText('-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----')).toBe('<redacted>');
});

test.each([
  'pass.',
  'password',
  'pass.=',
  'token="',
  "a.secret='",
  'token ',
  'eyJa-',
  'eyJa.',
  'eyJ',
  'bearer ',
  'bearer\t\t',
  'http://',
  'a.',
  'a:',
  '://',
  'http://a?',
  'http://a@',
  'http:',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY ',
  '-----END PRIVATE KEY-----',
  '-----BEGIN A PRIVATE KEY----------END B PRIVATE KEY-----',
  '-----',
  '\\"',
  ' ',
])('the time is in proportion to the text: %j', (unit) => {
  const text = (size: number) => unit.repeat(size / unit.length);
  expect(growth(text, redactText, 128 * 1024)).toBeLessThan(25);
  expect(growth((size) => `${unit}${' '.repeat(size)}`, redactText, 16 * 1024)).toBeLessThan(25);
});

test.each([
  ['https://user:p@ss@host/a?b=c#d', 'https://<redacted>@host/a?<redacted>'],
  ['x=https://one https://two?q', 'x=https://one https://two?<redacted>'],
  ['git+ssh://a:b@c', 'git+ssh://<redacted>@c'],
  ['to http://a.b/c?', 'to http://a.b/c?'],
  ['what? http://a#b', 'what? http://a?<redacted>'],
  ['a.eyJhbGci.eyJzdWIi.abc next', 'a.<redacted> next'],
  ['x-eyJhbGci.eyJzdWIi.abc', 'x-<redacted>'],
  ['eyJ.short eyJa.short', 'eyJ.short eyJa.short'],
  ['msg="password=hunter2"', 'msg="password=<redacted>"'],
  ['url=token=hunter2', 'url=token=<redacted>'],
  ['"my.api_key" : "a b" and more', '"my.api_key" : <redacted> and more'],
  ["PWD='hunter2", 'PWD=<redacted>'],
  [String.raw`{\"password\":\"hunter2\"}`, String.raw`{\"password\":<redacted>}`],
  ['the token is gone', 'the token is gone'],
  ['-----BEGIN EC PRIVATE KEY-----\nMHc+/=\nMore', '<redacted>'],
  [
    'a -----BEGIN PRIVATE KEY-----\nx-y\n-----END PRIVATE KEY----- b -----BEGIN PRIVATE KEY-----MHc"c',
    'a <redacted> b <redacted>"c',
  ],
])('%j is shown as %j', (text, shown) => {
  expect(redactText(text)).toBe(shown);
});
