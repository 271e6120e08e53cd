import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { runUpstream } from './command.ts';
import { parseKnown } from './known.ts';
import { followedProjects } from './projects.ts';

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) {
    rmSync(folder, { recursive: true, force: true });
  }
});

const crdFile = 'charts/argocd-agent-addon/crds/apps.open-cluster-management.io_gitopsclusters.yaml';
const crd = (field: string) => `kind: CustomResourceDefinition
metadata: { name: gitopsclusters.apps.open-cluster-management.io }
spec:
  versions:
    - name: v1alpha1
      schema: { openAPIV3Schema: { properties: { spec: { properties: { ${field}: { properties: { below: {} } } } } } } }
`;

/** A little argocd-pull-integration that has nothing that is not known, and then these files. */
function pullIntegration(files: Readonly<Record<string, string>> = {}): string {
  return tree({
    'go.mod': 'module open-cluster-management.io/argocd-pull-integration\n\ngo 1.26\n',
    'cmd/main.go': 'func main() {\n\tflag.StringVar(&mode, "mode", "controller", "…")\n}\n',
    'internal/a.go':
      'var image = os.Getenv("CONTROLLER_IMAGE")\nconst a = "apps.open-cluster-management.io/destination-name"\n',
    [crdFile]: crd('argoCDAgentAddon').replace('{ properties: { below: {} } }', '{}'),
    'charts/argocd-agent-addon/values.yaml': 'image: x\nhubArgoCD:\n  enabled: true\n',
    'charts/argocd-pull-integration/values.yaml': 'replicas: 1\n',
    'test/e2e/a_test.go': 'var _ = Describe("Pull", func() {\n\tIt("works", func() {})\n})\n',
    ...files,
  });
}

function tree(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'upstream-'));
  made.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const known = `argocd-pull-integration:
  - kind: tests
    why: modes has it
    names: [Pull / works]
`;

function run(args: readonly string[], list = known) {
  let out = '';
  let err = '';
  const code = runUpstream(
    args,
    (text) => (out += text),
    (text) => (err += text),
    list,
  );
  return { code, out, err };
}
const compared = (folder: string, ...more: string[]) => run(['--of', 'argocd-pull-integration', folder, ...more]);

test('nothing is said of what is known, by the project itself or by the list', () => {
  const folder = pullIntegration();
  expect(compared(folder)).toEqual({
    code: 0,
    out: `argocd-pull-integration, ${folder}: nothing is new.\n`,
    err: '',
  });
});

test('everything new is said, once, with its file; parts of it are not', () => {
  const folder = pullIntegration({
    'cmd/main.go': 'func main() {\n\tflag.Var(&mode, "mode", "")\n\tflag.BoolVar(&fast, "fast", true, "…")\n}\n',
    'internal/a.go':
      'os.Getenv("CONTROLLER_IMAGE")\nos.Getenv("NEW_ONE")\nconst a = "apps.open-cluster-management.io/wings"\n',
    'internal/b.go': 'os.Getenv("NEW_ONE")\n',
    'internal/b_test.go': 'os.Getenv("OF_A_TEST")\n',
    [crdFile]: crd('quiet'),
    'charts/argocd-agent-addon/values.yaml': 'spire:\n  enabled: true\n',
    'test/e2e/a_test.go': 'Describe("Pull", func() { It("works", f); It("flies", f) })\n',
  });
  const { code, out } = compared(folder, '-o', 'json');
  expect(code).toBe(1);
  expect(JSON.parse(out)).toEqual({
    project: 'argocd-pull-integration',
    checkout: folder,
    new: [
      { kind: 'flags', name: 'manager --fast', file: 'cmd/main.go' },
      { kind: 'environment', name: 'NEW_ONE', file: 'internal/a.go' },
      { kind: 'marks', name: 'apps.open-cluster-management.io/wings', file: 'internal/a.go' },
      {
        kind: 'fields',
        name: 'gitopsclusters.apps.open-cluster-management.io v1alpha1 spec.quiet',
        file: crdFile,
      },
      {
        kind: 'values',
        name: 'argocd-agent-addon spire',
        file: 'charts/argocd-agent-addon/values.yaml',
      },
      { kind: 'tests', name: 'Pull / flies', file: 'test/e2e/a_test.go' },
    ],
    gone: [],
  });
  const text = compared(folder).out;
  expect(text).toContain(': 6 new.\n\nFlags\n  manager --fast  cmd/main.go\n\nEnvironment variables\n');
});

test('entries of the list that say nothing are named, and are no news', () => {
  const list = `${known}  - kind: flags
    why: no need
    names: [manager --gone, manager --mode]
`;
  const { code, out } = run(['--of', 'argocd-pull-integration', pullIntegration()], list);
  expect(code).toBe(0);
  expect(out).toContain('  flags: manager --gone  not there\n  flags: manager --mode  this project has it\n');
});

test('a revision of a bare repository is read', () => {
  const folder = pullIntegration();
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], {
      stdio: 'pipe',
    });
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'one');
  git('tag', 'one');
  writeFileSync(join(folder, 'cmd/main.go'), 'flag.BoolVar(&fast, "fast", true, "…")\n');
  git('commit', '-qam', 'two');
  git('update-ref', 'refs/pull/7/head', 'HEAD');
  const bare = `${tree({})}/bare`;
  execFileSync('git', ['clone', '-q', '--mirror', folder, bare], { stdio: 'pipe' });
  expect(compared(bare, '--ref', 'one').code).toBe(0);
  expect(compared(bare).out).toContain('manager --fast');
  const { code, out } = compared(bare, '--ref', 'refs/pull/7/head');
  expect(code).toBe(1);
  expect(out).toMatch(/ at refs\/pull\/7\/head \([0-9a-f]{12}\): 1 new\./);
  expect(compared(bare, '--ref=--all')).toMatchObject({ code: 2, err: `${bare} has no revision --all\n` });
});

test('a program of argocd-agent: commands, flags, params, metrics, protocol', () => {
  const folder = tree({
    'go.mod': 'module github.com/argoproj-labs/argocd-agent\n',
    'cmd/argocd-agent/principal.go':
      'func NewPrincipal() {\n\tc := &cobra.Command{Use: "argocd-agent"}\n\tc.AddCommand(NewRun())\n}\n' +
      'func NewRun() {\n\tc := &cobra.Command{Use: "principal"}\n\tc.Flags().StringVar(&a, "auth", env.StringWithDefault("ARGOCD_PRINCIPAL_AUTH", nil, ""), "")\n\tc.Flags().StringVar(&b, "new-auth", "", "")\n}\n',
    'cmd/ctl/main.go':
      'func New() {\n\tc := &cobra.Command{Use: "argocd-agentctl"}\n\tc.AddCommand(NewFly())\n}\nfunc NewFly() {\n\tc := &cobra.Command{Use: "fly"}\n\tc.Flags().Bool("high", false, "")\n}\n',
    'install/kubernetes/agent/agent-params-cm.yaml': 'kind: ConfigMap\ndata:\n  agent.mode: ""\n  agent.wings: "2"\n',
    'install/kubernetes/agent/kustomization.yaml': 'resources: []\n',
    'install/helm-repo/argocd-agent-agent/values.schema.json': '{ "properties": { "agentMode": {} } }',
    'internal/metrics.go':
      'prometheus.GaugeOpts{Name: "agent_errors"}\nprometheus.GaugeOpts{Name: "argocd_principal_appsets_updated"}\n' +
      'prometheus.GaugeOpts{Name: prefix + "_workqueue_depth"}\nprometheus.GaugeOpts{Name: prefix + "_wings"}\n' +
      'const group = "argoproj.io/v1alpha1"\nconst skip = "argocd-agent.argoproj-labs.io/ignore-sync"\n',
    'principal/apis/auth/auth.proto':
      'package authapi;\nmessage AuthRequest { string method = 1; string wing = 9; }\nmessage Wing { int32 n = 1; }\n',
    'test/e2e/a_test.go': 'func (suite *S) Test_a() {\n}\n',
  });
  const { out } = run(['--of', 'argocd-agent', folder, '-o', 'json']);
  expect(JSON.parse(out).new.map(({ name }: { name: string }) => name)).toEqual([
    'argocd-agentctl fly',
    'argocd-agent principal --new-auth',
    'agent.wings',
    '…_wings',
    'authapi.AuthRequest string wing = 9',
    'authapi.Wing',
    'S.Test_a',
  ]);
});

const missing = '/nonexistent/checkout';
test.each([
  ['no project', [missing], '--of PROJECT and one CHECKOUT are needed\n\nUsage: '],
  ['no checkout', ['--of', 'ocm'], '--of PROJECT and one CHECKOUT are needed\n\nUsage: '],
  ['two checkouts', ['--of', 'ocm', 'a', 'b'], '--of PROJECT and one CHECKOUT are needed\n\nUsage: '],
  [
    'a project that is not followed',
    ['--of', 'flux', missing],
    'there is no project flux; it must be one of argocd-agent, argocd-pull-integration, argo-cd, ocm\n\nUsage: ',
  ],
  ['a format', ['--of', 'ocm', missing, '-o', 'yaml'], '--output must be text or json, not yaml\n\nUsage: '],
  ['a flag', ['--fo', 'ocm', missing], "Unknown option '--fo'"],
  ['no folder', ['--of', 'ocm', missing], `there is no folder ${missing}\n`],
])('%s is refused with exit code 2', (_, args, message) => {
  const { code, out, err } = run(args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err.slice(0, message.length)).toBe(message);
});

test('a checkout of something else is refused', () => {
  const other = tree({ 'go.mod': 'module example.org/other/v3\n' });
  expect(compared(other)).toMatchObject({
    code: 2,
    err: `${other} is no checkout of argocd-pull-integration: its go.mod says module example.org/other/v3\n`,
  });
  const none = tree({});
  expect(compared(none).err).toBe(`${none} is no checkout of argocd-pull-integration: it has no go.mod\n`);
});

test('a project that keeps its things elsewhere by now is no project without news', () => {
  const folder = pullIntegration({ 'cmd/main.go': 'package main\n' });
  expect(compared(folder)).toMatchObject({
    code: 2,
    err: `${folder} has nothing of the kind flags (Flags) where argocd-pull-integration had it: upstream/projects.ts says where\n`,
  });
});

test('files that are too large are not read, and links are not followed', () => {
  const folder = pullIntegration();
  symlinkSync('/etc/passwd', join(folder, 'cmd/link.go'));
  expect(compared(folder).code).toBe(0);
  truncateSync(join(folder, 'cmd/main.go'), 9 * 1024 * 1024);
  expect(compared(folder)).toMatchObject({
    code: 2,
    err: 'cmd/main.go is too large: 9437184 bytes, after 0 bytes of other files\n',
  });
});

test('whatever goes wrong, exit code 1 is only for news', () => {
  const { code, err } = run(['--of', 'argocd-pull-integration', pullIntegration()], 'flux: []');
  expect(code).toBe(2);
  expect(err).toContain('upstream/known.yaml: ');
});

test('--help says what the exit codes mean', () => {
  expect(run(['--help'])).toMatchObject({ code: 0, out: expect.stringContaining('Exit code: 0 when nothing is new') });
});

const parsed = (text: string) => parseKnown(text, ['ocm']);
test.each([
  ['another project', 'flux: []', 'Unrecognized key: "flux"'],
  ['another kind', 'ocm: [{ kind: wings, why: x, names: [a] }]', 'at ocm[0].kind'],
  ['no reason', 'ocm: [{ kind: flags, names: [a] }]', 'at ocm[0].why'],
  ['something twice', 'ocm: [{ kind: flags, why: x, names: [a, a] }]', 'ocm has a of the kind flags twice'],
])('the list is refused with %s', (_, text, message) => {
  expect(() => parsed(text)).toThrow(message);
});

test('the list of this project can be read, and names files that exist', () => {
  const text = readFileSync(join(import.meta.dirname, 'known.yaml'), 'utf8');
  expect(Object.keys(parseKnown(text, Object.keys(followedProjects)))).toEqual(Object.keys(followedProjects));
  const named = text.match(/\b(?:agent|controller|docs|e2e|lib|principal)\/[\w./-]+\.(?:ts|md)\b/g) ?? [];
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(join(import.meta.dirname, '..', path)))).toEqual([]);
});
