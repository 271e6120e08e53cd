import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { configMaps, type KubeClient, secrets } from '../../lib/kube/index.ts';
import { type HaAdminStub, startHaAdmin } from '../testing/ha-admin.ts';
import { ensureNamespaces, twoContexts } from '../testing/lab.ts';
import { type ComparedRun, type Contender, runOriginal, runOurs, type TypedLine } from '../testing/original.ts';

// The same commands by this tool and by argocd-agent's own, against equal API servers.

const original = process.env.ARGOCD_AGENTCTL_BIN ?? '';
type Part = keyof ComparedRun;
/** A line, or what is done to both clusters before the next ones. `wanted` says which parts differ: by which row of docs/argocd-agentctl.md. */
type Step =
  | string
  | (TypedLine & { readonly wanted?: Partial<Record<Part, string>> })
  | ((client: KubeClient) => Promise<unknown>);

// The rows of the table of differences.
const misuse = 'wrong number of arguments, unknown commands and flags, nothing at all';
const words = 'texts of errors';
const usage = 'errors of `blocklist` and `ha`';
const noContext = 'neither context nor configuration file';
const worded = (line: string) => ({ line, wanted: { err: words } });
const misused = (line: string) => ({ line, wanted: { out: misuse, err: misuse } });

// Fifty commands in one test.
describe('beside the original', { timeout: 600_000, tags: 'argocd-agentctl' }, () => {
  let folder: string;
  let ours: Contender;
  let theirs: Contender;
  let admin: HaAdminStub;
  let table: string;
  const all: SharedCluster[] = [];

  async function contender(name: string): Promise<Contender> {
    const cluster = await borrowCluster({ name });
    all.push(cluster);
    await ensureNamespaces(cluster, 'argocd', 'other');
    const home = await mkdtemp(join(folder, `${name}-`));
    await writeFile(join(home, 'kube'), JSON.stringify({ contexts: [{ name: 'hub', context: { cluster: 'hub' } }] }));
    return { cluster, home, kubeconfig: await twoContexts(cluster) };
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'beside-'));
    table = await readFile(new URL('../../docs/argocd-agentctl.md', import.meta.url), 'utf8');
    admin = await startHaAdmin();
    [ours, theirs] = await Promise.all([contender('ours'), contender('theirs')]);
  });
  afterAll(async () => {
    admin?.stop();
    await Promise.all(all.map((cluster) => cluster.stop()));
    await rm(folder, { recursive: true });
  });

  /** Takes the steps in their order. @returns where the two differ and should not, and where they should and do not */
  async function compare(steps: readonly Step[]): Promise<unknown[]> {
    const found: unknown[] = [];
    for (const step of steps) {
      if (typeof step === 'function') {
        await Promise.all([ours, theirs].map(({ cluster }) => step(cluster.client)));
        continue;
      }
      const typed = typeof step === 'string' ? { line: step } : step;
      const [mine, its] = await Promise.all([runOurs(ours, typed), runOriginal(original, theirs, typed)]);
      for (const part of ['code', 'out', 'err', 'cluster'] as const) {
        const isSame = isDeepStrictEqual(mine[part], its[part]);
        const row = typeof step === 'string' ? undefined : step.wanted?.[part];
        if (row !== undefined && !table.includes(`\n| ${row} |`)) {
          throw new Error(`the table of differences has no row ${row}`);
        }
        if (isSame !== (row === undefined)) {
          found.push({
            line: typed.line,
            part,
            ...(isSame ? { notMet: row } : { ours: mine[part], original: its[part] }),
          });
        }
      }
    }
    return found;
  }

  test('usage', async () => {
    expect(
      await compare([
        misused(''),
        'help',
        'help agent',
        { line: 'completion powershell', wanted: { code: '`completion`', out: '`completion`', err: '`completion`' } },
        'agent',
        'agents',
        'pki',
        'pki issue',
        'jwt',
        'config',
        'config add',
        'validate',
        'blocklist',
        'blocklist tls',
        'ha',
        { line: 'sing', wanted: { err: misuse } },
        misused('agent sing'),
        misused('agent create'),
        misused('agent create a b'),
        misused('agent inspect'),
        misused('agent print-tls'),
        misused('agent reconfigure'),
        misused('pki issue agent'),
        { line: 'blocklist tls add', wanted: { err: misuse } },
        { line: 'blocklist tls add a b', wanted: { err: misuse } },
        { line: 'agent list --sing', wanted: { err: misuse } },
        { line: 'pki init --days x', wanted: { err: misuse } },
        { line: 'version', wanted: { out: '`version`' } },
        { line: 'version -i', wanted: { out: '`version`' } },
      ]),
    ).toEqual([]);
  });

  test('pki', async () => {
    const sides = '--principal-context hub --agent-context east --agent-namespace other';
    expect(
      await compare([
        worded('pki inspect'),
        'pki dump --all',
        { line: 'pki dump', wanted: { out: misuse } },
        'pki delete',
        'pki issue principal',
        worded(`pki propagate ${sides}`),
        { line: 'pki init --key-algorithm none', wanted: { out: '`pki init` with a wrong flag', err: words } },
        { line: 'pki init --key-size 1024', wanted: { out: '`pki init` with a wrong flag', err: words } },
        { line: 'pki init --days 0', wanted: { out: '`pki init` with a wrong flag', err: words } },
        'pki init --key-size 2048 --days 100',
        'pki init',
        'pki init --force --key-algorithm ed25519',
        'pki init -f --key-algorithm ecdsa-p384 --days 400',
        'pki inspect',
        'pki dump --all',
        'pki dump --key',
        'pki dump --cert',
        'pki dump --cert --key',
        'pki issue principal --ip 10.0.0.1,::1 --dns hub.example.com --key-algorithm ed25519',
        'pki inspect',
        'pki issue principal',
        'pki issue principal -u --key-size 2048',
        'pki new-cert principal --upsert --key-algorithm ecdsa-p256 --days 30 --ip 10.0.0.1 --ip 10.0.0.2 --dns a --dns b,c',
        'pki issue principal -u --ip x',
        worded('pki issue principal -u --days 9999'),
        'pki issue principal -u --days -1',
        'pki issue resource-proxy',
        'pki issue resource-proxy --no-san --key-algorithm ecdsa-p521',
        'pki issue resource-proxy -u --dns proxy --key-algorithm ecdsa-p256',
        'pki inspect',
        'pki inspect -o text',
        'pki inspect -o yaml',
        'pki inspect -o YAML --full',
        worded('pki inspect -o xml'),
        'pki propagate',
        'pki propagate --principal-context hub --agent-context hub',
        `pki propagate ${sides}`,
        `pki propagate ${sides}`,
        `pki propagate ${sides} -f`,
        'pki issue agent east',
        'pki issue agent east --agent-context hub',
        'pki issue agent east --agent-context hub --same-context --agent-namespace other --key-algorithm ecdsa-p256',
        `pki issue agent east ${sides} --key-algorithm ecdsa-p256`,
        `pki issue agent east ${sides} -u --key-algorithm ecdsa-p256 --days 3`,
        { line: 'pki delete', answers: ['yes'] },
        { line: 'pki delete', answers: ['YES'] },
        worded('pki inspect'),
      ]),
    ).toEqual([]);
  });

  test('agent', async () => {
    const own = { metadata: { namespace: 'other', name: 'own-tls' }, type: 'kubernetes.io/tls' };
    expect(
      await compare([
        'agent list',
        worded('agent create east'),
        'pki init --key-algorithm ecdsa-p256',
        'agent create east --key-size 2048 -l env=prod --label tier=a,zone=b',
        'agent create east',
        'agent create west --resource-proxy-server proxy.example.com:443 --key-algorithm ed25519 --days 10',
        'agent create north --resource-proxy-server 10.0.0.1:9090 --key-algorithm ecdsa-p256',
        'agent create six --resource-proxy-server [::1]:9090 --key-algorithm ecdsa-p256',
        'agent create bad --resource-proxy-server proxy',
        'agent create bad --resource-proxy-server proxy:99999',
        'agent create bad --resource-proxy-server Proxy_x:1',
        worded('agent create Bad_Name'),
        worded('agent create bad --days 99999'),
        'agent create bad -l x',
        'agent create bad -l x=1,x=2',
        'agent create bad --tls-from-secret x',
        'agent create bad --tls-from-secret x --ca-from-secret y --key-size 2048',
        worded('agent create bad --tls-from-secret x --ca-from-secret y'),
        async (client) => {
          const tls = await client.get(secrets, { namespace: 'argocd', name: 'argocd-agent-ca' });
          const data = tls?.data ?? {};
          await client.create(secrets, { ...own, data });
          const ca = { 'ca.crt': data['tls.crt'] ?? '' };
          await client.create(secrets, { metadata: { namespace: 'argocd', name: 'own-ca' }, data: ca });
        },
        'agent create given --tls-from-secret other/own-tls --ca-from-secret own-ca',
        'agent create given2 --tls-from-secret other/own-tls --ca-from-secret other/own-tls',
        'agent list',
        'agents list -l env=prod',
        'agent list -l env=prod,tier=a -l zone=b',
        'agent list -l env=dev',
        worded('agent list -l !!'),
        'agent inspect east',
        'agent show west',
        'agent inspect east -o text',
        'agent inspect east -o yaml',
        worded('agent inspect east -o xml'),
        'agent inspect none',
        'agent print-tls east',
        'agent dump-tls east -t key',
        'agent print-tls east --type CA',
        'agent print-tls east -t x',
        'agent print-tls none',
        'agent reconfigure east',
        'agent reconfigure none',
        'agent reconfigure east --key-size 2048',
        'agent reconfigure east --resource-proxy-server https://x:1?agentName=east',
        'agent reconfigure east --resource-proxy-username u --resource-proxy-password p',
        'agent reconfigure east --reissue-client-cert --key-algorithm ecdsa-p256 --days 7',
        'agent reconfigure west --reissue-client-cert --key-algorithm ed25519 --resource-proxy-server https://y:2',
        'agent inspect west',
        worded('agent list --principal-context none'),
        'agent list --principal none',
        { line: 'agent inspect west', env: {}, wanted: { code: noContext, out: noContext, err: noContext } },
      ]),
    ).toEqual([]);
  });

  test('jwt', async () => {
    expect(
      await compare([
        worded('jwt inspect-key'),
        'jwt create-key',
        'jwt create-key',
        'jwt inspect-key',
        'jwt inspect-key -o text',
        'jwt inspect-key -o yaml',
        worded('jwt inspect-key -o xml'),
        'jwt create-key --upsert',
        { line: 'jwt delete-key', answers: ['n'] },
        { line: 'jwt delete-key', answers: [''] },
        { line: 'jwt delete-key', answers: ['y'] },
        'jwt delete-key -f',
        { line: 'jwt delete-key', answers: ['Y'] },
      ]),
    ).toEqual([]);
  });

  test('blocklist', async () => {
    expect(
      await compare([
        'blocklist tls list',
        'blocklist tls remove AB',
        'blocklist tls add AB',
        'blocklist tls add AB',
        'blocklist tls list',
        'blocklist tls add CD',
        'blocklist tls remove AB',
        'blocklist tls remove AB',
        'blocklist tls list',
        { line: 'blocklist tls add a/b', wanted: { err: usage } },
      ]),
    ).toEqual([]);
  });

  test('config', async () => {
    const place = '--context c --namespace n';
    expect(
      await compare([
        worded('config list'),
        worded('config add agent --name a --context c --namespace n'),
        worded('config create --kubeconfig-path <home>/none --output-path <home>/ctl.conf'),
        {
          line: 'config create --kubeconfig-path <home>/kube --output-path <home>/ctl.conf',
          answers: ['sing', 'principal', 'a b', 'argocd', 'main', 'nobody', 'main'],
        },
        'config list',
        'config list principal',
        'config list agent',
        `config add principal --name p ${place}`,
        `config add principal --name p ${place}`,
        `config add agent --name a ${place}`,
        `config add agent --name a ${place}`,
        { line: 'config add agent --name a', wanted: { err: misuse } },
        { line: 'config add principal --context c', wanted: { err: misuse } },
        'config add agent --name x --context= --namespace n',
        'config edit agent --name a --namespace m',
        'config edit agent --name none',
        'config edit principal --name p --set-default',
        'config edit principal --name none',
        { line: 'config edit agent', wanted: { err: misuse } },
        'config delete agent --name none',
        'config delete principal --name p',
        'config delete principal --name none',
        'config delete principal --name main',
        'config list principal',
        'config delete agent --name a',
        'config list agent',
        'agent list --agent none',
      ]),
    ).toEqual([]);
    const files = await Promise.all([ours, theirs].map(({ home }) => readFile(join(home, 'ctl.conf'), 'utf8')));
    expect(parse(files[0] ?? '')).toEqual(parse(files[1] ?? ''));
  });

  test('ha', async () => {
    const at = `-a ${admin.address}`;
    expect(
      await compare([
        `ha status ${at}`,
        `ha status ${at} -o json`,
        `ha status ${at} -o yaml`,
        { line: `ha status ${at} -o xml`, wanted: { err: usage } },
        `ha promote ${at} -f`,
        { line: `ha promote ${at}`, answers: ['n'] },
        { line: `ha promote ${at}`, answers: ['y'], wanted: { err: usage } },
        `ha demote ${at} --force`,
        { line: `ha demote ${at}`, answers: ['n'] },
        { line: 'ha status -a 127.0.0.1:1 -t 2s', wanted: { err: usage } },
        { line: 'ha status --principal-context hub', wanted: { err: usage } },
      ]),
    ).toEqual([]);
  });

  test('validate', async () => {
    const sides = '--principal-context hub --agent-context east --agent-namespace other';
    expect(
      await compare([
        'validate',
        'validate principal',
        'validate agent',
        {
          line: 'validate principal',
          env: { ARGOCD_AGENT_PRINCIPAL_CONTEXT: 'hub', ARGOCD_AGENT_PRINCIPAL_NAMESPACE: ' ' },
        },
        { line: `validate agent ${sides}`, wanted: { out: '`validate`: dates and reasons in messages' } },
        'pki init --key-algorithm ecdsa-p256',
        'pki issue principal --key-algorithm ecdsa-p256',
        'pki issue resource-proxy --key-algorithm ecdsa-p256 --dns proxy',
        `pki issue agent east ${sides} --key-algorithm ecdsa-p256`,
        'jwt create-key --upsert',
        async (client) => client.create(configMaps, { metadata: { namespace: 'argocd', name: 'argocd-cm' }, data: {} }),
        'validate principal',
        { line: `check-config agent ${sides}`, wanted: { out: '`validate`: dates and reasons in messages' } },
      ]),
    ).toEqual([]);
  });
});
