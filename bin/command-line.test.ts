import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtProject } from '../e2e/programs/index.ts';

let folder: string;
/** What is delivered: it starts in a fifth of the time. */
let build: string;
beforeAll(async () => {
  build = await builtProject();
  folder = mkdtempSync(join(tmpdir(), 'command-line-'));
  writeFileSync(join(folder, 'empty'), '');
  writeFileSync(join(folder, 'broken'), 'clusters: [');
  const cluster = { server: 'https://127.0.0.1:1' };
  const contexts = [{ name: 'a', context: { cluster: 'a', user: 'a' } }];
  const closed = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user: {} }],
    contexts,
  };
  writeFileSync(join(folder, 'closed'), JSON.stringify(closed));
  writeFileSync(join(folder, 'odd'), 'clusters: 3');
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(line: string, env: Record<string, string> = {}): Promise<{ code: number; out: string; err: string }> {
  const [program = '', ...args] = line.replaceAll('FOLDER', folder).split(' ');
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env }, timeout: 30_000 };
    execFile(process.execPath, [join(build, 'bin', `${program}.js`), ...args], options, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

const enroll = 'argocd-agent enroll';

const agent = 'argocd-agent agent --server-address=h --creds=mtls:any --healthz-port=1 --agent-mode=managed';

test.each([
  ['gitops-controller render --cluster=a --kubeconfig=/none', 'kubeconfig /none does not exist'],
  ['gitops-controller render --cluster=a', 'no Kubernetes configuration: give --kubeconfig or KUBECONFIG'],
  ['gitops-controller uninstall --kubeconfig=FOLDER/empty --kubecontext=x', 'there is no context "x"'],
  ['gitops-controller controller --kubeconfig=FOLDER/broken --agent-image=x', 'broken cannot be read: '],
  ['gitops-controller basic --kubeconfig=FOLDER/odd', 'odd: clusters: '],
  [`${agent} --kubeconfig=/none`, 'Could not load Kubernetes config: kubeconfig /none does not exist'],
])('%s: an error of one line', async (line, expected) => {
  const { code, err } = await run(line);
  expect(err).toContain(expected);
  expect(err.trimEnd().split('\n')).toHaveLength(1);
  expect(code).toBe(1);
});

test.each([
  [enroll, '"argocd-agent enroll" needs the argument NAME'],
  [`${enroll} a b`, 'unknown argument "b" for "argocd-agent enroll"'],
  [`${enroll} Edge_1`, 'NAME "Edge_1" is not a DNS label: lower-case letters'],
  [`${enroll} argocd`, "NAME must not be that of Argo CD's namespace on the hub, argocd"],
  [`${enroll} a --mode=other`, 'must be one of: managed, autonomous'],
  [`${enroll} a --agent-namespace=A.b`, '--agent-namespace "A.b" is not a DNS label'],
  [`${enroll} a --principal-address=https://hub`, '--principal-address "https://hub" is not host or host:port'],
  [`${enroll} a --principal-address=hub:70000`, '--principal-address "hub:70000" is not host or host:port'],
  [`${enroll} a --image=x/argocd-agent:v1`, 'x/argocd-agent:v1 cannot use a token: add --certificate=generate'],
  [`${enroll} a --label=env`, 'must be key=value with the key of a label, such as env=prod, not "env"'],
  [`${enroll} a --label=env=prod,-x=1`, 'such as env=prod, not "-x=1"'],
  [`${enroll} a --label=env=not/a/value`, '"env=not/a/value" has a value that no label can have'],
  [
    `${enroll} a --label=argocd.argoproj.io/secret-type=x`,
    'argoproj.io/secret-type=x": labels of Argo CD, argocd-agent',
  ],
  [`${enroll} a --token-ttl=0s`, 'must be greater than 0'],
  [`${enroll} a --kubeconfig=FOLDER/closed`, 'the hub at https://127.0.0.1:1 cannot be reached: '],
  ['gitops-controller release --to=flux', '--to must say who goes on with the hub: original'],
  ['gitops-controller adopt --dry-run --kubeconfig=FOLDER/closed', 'https://127.0.0.1:1'],
  ['argocd-agent pki --principal-address=a,b:443', '"b:443" is no host name or IP address'],
  ['argocd-agent pki --kubeconfig=FOLDER/closed', 'check --kubeconfig and --kubecontext, and that the hub is up'],
])('%s: refused', async (line, expected) => {
  const { code, out, err } = await run(line);
  expect(err).toContain(expected);
  expect([code, out]).toEqual([1, '']);
});

test.each(['argocd-agent', 'gitops-controller'])('%s --version', async (name) => {
  expect(await run(`${name} --version`)).toMatchObject({
    code: 0,
    out: expect.stringMatching(new RegExp(`^${name}-\\d`)),
  });
});

test('a mode that does not exist is refused with the names of those that do', async () => {
  const { code, err } = await run('gitops-controller --mode=foo');
  expect(err.split('\n', 1)[0]).toContain('one of: controller, cleanup, basic');
  expect(code).toBe(1);
});

test.each(['Managed', ''])('the mode %j in the environment of an agent is refused', async (mode) => {
  const { code, err } = await run('argocd-agent agent --server-address=h --kubeconfig=/none', {
    ARGOCD_AGENT_MODE: mode,
  });
  expect(err.split('\n', 1)[0]).toBe(
    `Error: invalid value ${JSON.stringify(mode)} of ARGOCD_AGENT_MODE (--agent-mode): must be one of: managed, autonomous`,
  );
  expect(code).toBe(1);
});

test('arguments that are no flags are ignored with a warning', async () => {
  const { err } = await run(`${agent} --insecure-tls false --kubeconfig=/none`);
  expect(err).toContain('arguments that are no flags are ignored');
  expect(err).toContain('kubeconfig /none does not exist');
});
