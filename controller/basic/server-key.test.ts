import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

// The init container that makes server.secretkey on a cluster, with a command `argocd` that exports and imports files.

const chart = join(import.meta.dirname, '../../charts/argocd-pull-integration/files/argocd.yaml');
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'server-key-'));
  const script = `#!/bin/sh
case "$*" in
  'admin export') cat ${folder}/export ;;
  'admin import -') cat > ${folder}/imported ;;
esac
`;
  await writeFile(join(folder, 'argocd'), script);
  await chmod(join(folder, 'argocd'), 0o755);
});
afterEach(() => rm(folder, { recursive: true }));

async function command(): Promise<readonly string[]> {
  interface Container {
    readonly name: string;
    readonly command: readonly string[];
  }
  interface Pod {
    readonly spec?: { readonly template?: { readonly spec?: { readonly initContainers?: readonly Container[] } } };
  }
  const pods = parseAllDocuments(await readFile(chart, 'utf8')).map((document) => document.toJS() as Pod);
  const all = pods.flatMap(({ spec }) => spec?.template?.spec?.initContainers ?? []);
  return all.find(({ name }) => name === 'server-key')?.command ?? [];
}

/** Runs it on a cluster with this export. Returns the Secret that it imports; undefined: none. */
async function imported(documents: readonly string[]): Promise<Record<string, unknown> | undefined> {
  await writeFile(join(folder, 'export'), documents.join('---\n'));
  const [program = '', ...args] = await command();
  await promisify(execFile)(program, args, { env: { PATH: `${folder}${delimiter}${process.env.PATH}` } });
  return readFile(join(folder, 'imported'), 'utf8').then(parse, () => undefined);
}

const other = 'apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: argocd-secret\n';
const secretOf = (data: string) =>
  `apiVersion: v1\n${data}kind: Secret\nmetadata:\n  annotations:\n    own: x\n  labels:\n    team: a\n  name: argocd-secret\ntype: Opaque\n`;
const key = expect.stringMatching(/^[\w+/]{43}=$/);

test('it makes the Secret on a cluster that has none', async () => {
  expect(await imported([other])).toMatchObject({ kind: 'Secret', data: { 'server.secretkey': key } });
});

test.each([
  ['other keys', 'data:\n  webhook.github.secret: c2VjcmV0\n', { 'webhook.github.secret': 'c2VjcmV0' }],
  ['no keys', '', {}],
  ['empty data', 'data: {}\n', {}],
])('it adds the key to a Secret with %s, and keeps the rest', async (_, data, kept) => {
  expect(await imported([other, secretOf(data), other])).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'argocd-secret', annotations: { own: 'x' }, labels: { team: 'a' } },
    type: 'Opaque',
    data: { ...kept, 'server.secretkey': key },
  });
});

test('it leaves a key alone that is there', async () => {
  expect(await imported([other, secretOf('data:\n  server.secretkey: a2V5\n')])).toBeUndefined();
});

test('it fails when the cluster cannot be asked', async () => {
  await writeFile(join(folder, 'argocd'), '#!/bin/sh\nexit 20\n');
  await expect(imported([])).rejects.toThrow(/Command failed/);
});
