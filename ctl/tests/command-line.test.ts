import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCtl } from '../testing/run-ctl.ts';

let folder: string;
let config: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ctl-'));
  config = join(folder, 'a', 'ctl.conf');
});
afterEach(() => rm(folder, { recursive: true }));

const kubeconfig = (...contexts: string[]) =>
  JSON.stringify({ contexts: contexts.map((name) => ({ name, context: { cluster: name } })) });

test.each([
  [[], 1, 'Usage:\n  argocd-agentctl [command]'],
  [['agent'], 1, '  create'],
  [['agents'], 1, '  print-tls'],
  [['pki'], 1, '  propagate'],
  [['pki', 'issue'], 0, '  resource-proxy'],
  [['jwt'], 0, '  create-key'],
  [['config'], 0, '  create'],
  [['validate'], 0, '  principal'],
  [['blocklist', 'tls'], 0, '  remove'],
  [['help', 'pki', 'issue', 'agent'], 0, '--same-context'],
  [['pki', 'new-cert', 'principal', '-h'], 0, '--principal-context string'],
])('%j prints help with exit code %i', async (args, code, text) => {
  const run = await runCtl(args);
  expect([run.code, run.err]).toEqual([code, '']);
  expect(run.out).toContain(text);
});

test.each([
  [['sing'], 'unknown command "sing" for "argocd-agentctl"'],
  [['agent', 'sing'], 'unknown command "sing" for "argocd-agentctl agent"'],
  [['agent', 'create'], 'needs the argument NAME'],
  [['agent', 'create', 'a', '--tls-from-secret=x'], 'Both --tls-from-secret and --ca-from-secret must be provided'],
  [['agent', 'create', 'a', '--resource-proxy-server=x'], '[FATAL]: invalid address: x'],
  [['agent', 'create', 'a', '--resource-proxy-server=x:99999'], '[FATAL]: invalid port: 99999'],
  [['agent', 'create', 'A_b'], 'invalid agent name'],
  [['agent', 'create', 'a', '-l', 'x'], "couldn't parse label definition 'x'"],
  [['agent', 'create', 'a', '-l', 'x=1', '-l', 'x=2'], "label 'x' already set with value '1'"],
  [
    ['agent', 'create', 'a', '--tls-from-secret=x', '--ca-from-secret=y', '--key-size=2048'],
    '--key-algorithm and --key-size are only used when generating certificates from the PKI',
  ],
  [['pki', 'dump'], 'One of --all, --key or --cert must be specified.'],
  [['pki', 'propagate'], 'PKI and agent cannot reside within the same context.'],
  [['pki', 'propagate', '--principal-context=a'], 'Must specify both principal and agent contexts.'],
  [['pki', 'issue', 'agent', 'x'], 'Both principal and agent kubecontext must be set.'],
  [
    ['pki', 'issue', 'agent', 'x', '--principal-context=a', '--agent-context=a'],
    'Use --same-context if you really mean it.',
  ],
  [['validate', 'agent'], 'An agent and principal must be provided for this command'],
  [['validate', 'principal', '--principal-namespace= '], '--principal-namespace is required'],
  [['config', 'list'], 'Failed to read config'],
  [['config', 'add', 'agent', '--name=a'], 'required flag(s) "context", "namespace" not set'],
  [['agent', 'list', '--principal=x'], 'Principal x does not exist in config'],
  [['agent', 'list', '--agent=x'], 'Agent x does not exist in config'],
])('%j is refused with exit code 1', async (args, text) => {
  const { code, err } = await runCtl(args);
  expect(err).toContain(text);
  expect(code).toBe(1);
});

test('resource-proxy wants names', async () => {
  const { code, out } = await runCtl(['pki', 'issue', 'resource-proxy']);
  expect([code, out]).toEqual([
    1,
    'Please pass at least one of --ip or --dns options or use --no-san to create certificate without SAN\n',
  ]);
});

test('version is JSON with the keys of argocd-agent, also with a broken configuration file', async () => {
  await writeFile(join(folder, 'broken'), ': [');
  const { out } = await runCtl(['--config', join(folder, 'broken'), 'version']);
  expect(Object.keys(JSON.parse(out))).toEqual([
    'name',
    'version',
    'gitRevision',
    'gitStatus',
    'goVersion',
    'buildDate',
    'argocdVersion',
  ]);
  expect(out).not.toMatch(/\n./);
  expect((await runCtl(['version', '-i'])).out).toContain('\n  "name": "argocd-agent"');
});

test('a configuration file is made by questions', async () => {
  await writeFile(join(folder, 'kube'), kubeconfig('hub', 'other', 'east'));
  const input = ['principal', 'argocd', 'main', 'wrong', '', 'agent', 'a b', 'cd', 'e', 'nobody', 'main', ''].join(
    '\n',
  );
  const args = ['config', 'create', '--kubeconfig-path', join(folder, 'kube'), '--output-path', config];
  const { code, out, err } = await runCtl(args, { input });
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('Found context other, is this a principal or agent?');
  expect(out).toContain(`> main\n`);
  expect(out.endsWith(`Successfully wrote config to ${config}\n`)).toBe(true);
  expect(await readFile(config, 'utf8')).toBe(
    [
      'contexts:',
      '  principals:',
      '    main:',
      '      kube-context: hub',
      '      namespace: argocd',
      '  agents:',
      '    e:',
      '      kube-context: east',
      '      namespace: cd',
      'default-principal: main',
      '',
    ].join('\n'),
  );
  expect((await stat(config)).mode & 0o777).toBe(0o600);
});

test('entries of the configuration file are added, changed, listed and removed', async () => {
  await writeFile(join(folder, 'kube'), kubeconfig());
  await runCtl(['config', 'create', '--kubeconfig-path', join(folder, 'kube'), '--output-path', config]);
  const run = async (...args: string[]) => {
    const { code, out, err } = await runCtl(['config', ...args, '--config', config]);
    return code === 0 ? out : err;
  };
  const place = ['--context=c', '--namespace=n'];
  expect(await run('add', 'principal', '--name=p', ...place, '--set-default')).toBe(
    'New principal p added successfully\n',
  );
  expect(await run('add', 'principal', '--name=p', ...place)).toBe(
    '[FATAL]: A principal with the name p already exists\n',
  );
  expect(await run('add', 'agent', '--name=a', ...place)).toBe('New agent a added successfully\n');
  expect(await run('edit', 'agent', '--name=a', '--namespace=m')).toBe('Agent a updated successfully\n');
  expect(await run('edit', 'agent', '--name=b')).toBe('[FATAL]: The agent b does not exist in the config\n');
  expect(await run('list')).toBe(
    'COMPONENT  NAME  CONTEXT  NAMESPACE\nprincipal  p     c        n\nagent      a     c        m\n',
  );
  expect(await run('list', 'principal')).toBe('NAME  CONTEXT  NAMESPACE  DEFAULT\np     c        n          X\n');
  expect(await run('list', 'agent')).toBe('NAME  CONTEXT  NAMESPACE\na     c        m\n');
  expect(await run('delete', 'principal', '--name=p')).toBe('[FATAL]: Cannot delete the default principal\n');
  expect(await run('delete', 'agent', '--name=a')).toBe('Agent a deleted successfully\n');
});

test('a configuration file that makes no sense is not used, with a warning', async () => {
  const path = join(folder, 'odd');
  await writeFile(path, 'default-principal: x\n');
  const { err } = await runCtl(['agent', 'list', '--config', path, '--kubeconfig', '/none']);
  expect(err).toContain(
    '[WARN]: invalid config: the default principal x does not exist in principal contexts, defaulting to using no config',
  );
  expect(err).toContain('kubeconfig /none does not exist');
});
