import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parse } from 'yaml';
import type { SharedCluster } from '../../e2e/testbed/index.ts';
import { configMaps, secrets } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';
import { type CtlRun, runCtl } from './run-ctl.ts';

/** Who runs a command against which cluster, and where their configuration file is. */
export interface Contender {
  readonly cluster: SharedCluster;
  readonly kubeconfig: string;
  /** A folder of its own: `$HOME`. */
  readonly home: string;
}

/** A command as it is typed. In `line`, `<home>` is the folder of the contender. */
export interface TypedLine {
  readonly line: string;
  /** Answers to questions, one for each. */
  readonly answers?: readonly string[];
  /** Without it, the context is `hub`. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a command did, without what is new at each time: times as days from now, certificates and keys by what they are. */
export interface ComparedRun {
  readonly code: number;
  /** Parsed if it is YAML, whose form is free. */
  readonly out: unknown;
  readonly err: string;
  /** Secrets and ConfigMaps that it wrote, by namespace and name; null for those that it deleted. */
  readonly cluster: Readonly<Record<string, unknown>>;
}

/** Secrets and ConfigMaps, and their versions. */
interface Written {
  readonly objects: Readonly<Record<string, unknown>>;
  readonly versions: Readonly<Record<string, string | undefined>>;
}

const hub = { ARGOCD_AGENT_PRINCIPAL_CONTEXT: 'hub' };

/** Runs a line with this project's tool. */
export async function runOurs(contender: Contender, typed: TypedLine): Promise<ComparedRun> {
  const before = await written(contender.cluster);
  const args = [...words(contender, typed), '--kubeconfig', contender.kubeconfig];
  const input = (typed.answers ?? []).map((answer) => `${answer}\n`).join('');
  const config = ['--config', `${contender.home}/ctl.conf`];
  return compared(
    contender,
    typed,
    before,
    await runCtl([...args, ...config], { input, env: { ...(typed.env ?? hub) } }),
  );
}

/** Runs a line with argocd-agent's own executable. It takes one answer for each question: it reads ahead otherwise. */
export async function runOriginal(executable: string, contender: Contender, typed: TypedLine): Promise<ComparedRun> {
  const { kubeconfig, home } = contender;
  const before = await written(contender.cluster);
  const env = { TZ: 'UTC', ...(typed.env ?? hub), KUBECONFIG: kubeconfig, HOME: home };
  const child = spawn(executable, [...words(contender, typed), '--config', `${home}/ctl.conf`], { env, stdio: 'pipe' });
  const answers = [...(typed.answers ?? [])];
  let [out, err] = ['', ''];
  child.stdin.on('error', () => undefined);
  const answer = () => {
    const next = answers.shift();
    if (next === undefined) {
      child.stdin.end();
    } else {
      child.stdin.write(`${next}\n`);
    }
  };
  if (answers.length === 0) {
    child.stdin.end();
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    if (text.endsWith(': ')) {
      answer();
    }
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const [code] = await once(child, 'close');
  return compared(contender, typed, before, { code: code ?? -1, out, err });
}

function words({ home }: Contender, { line }: TypedLine): string[] {
  return line
    .replaceAll('<home>', home)
    .split(' ')
    .filter((word) => word !== '');
}

async function compared(contender: Contender, { line }: TypedLine, before: Written, run: CtlRun): Promise<ComparedRun> {
  const plain = (text: string) => normalized(withoutHelp(text.replaceAll(contender.home, '<home>')));
  const after = await written(contender.cluster);
  const names = Object.keys({ ...before.versions, ...after.versions });
  const changed = names.filter((name) => before.versions[name] !== after.versions[name]);
  const isYaml = /-o yaml/i.test(line) && run.code === 0;
  return {
    code: run.code,
    out: isYaml ? comparable(parse(run.out)) : plain(run.out),
    err: plain(run.err),
    cluster: Object.fromEntries(changed.map((name) => [name, after.objects[name] ?? null])),
  };
}

/** What help says is each tool's own; so is the usage around an error. */
function withoutHelp(text: string): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.startsWith('Usage:'));
  const isError = (line: string) => /^(Error:|\[FATAL\])/.test(line);
  return at < 0
    ? text
    : [...lines.slice(0, at).filter(isError), '<help>', ...lines.slice(at).filter(isError)].join('\n');
}

/** Secrets and ConfigMaps by namespace and name, without what the API server adds. */
async function written({ client }: SharedCluster): Promise<Written> {
  const all = await Promise.all(
    ['argocd', 'other'].map(async (namespace) => [
      ...(await client.list(secrets, { namespace })).map((secret) => ({ ...secret, data: decodeSecret(secret) })),
      ...(await client.list(configMaps, { namespace })),
    ]),
  );
  const found = all.flat().filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt');
  const key = ({ metadata }: (typeof found)[number]) => `${metadata.namespace}/${metadata.name}`;
  const versions = Object.fromEntries(found.map((object) => [key(object), object.metadata.resourceVersion]));
  const objects = Object.fromEntries(
    found.map((object) => {
      const { labels, annotations } = object.metadata;
      const { config, ...fields } = (object.data ?? {}) as Record<string, string>;
      const data = comparable({ ...fields, ...(config === undefined ? {} : { config: clusterConfig(config) }) });
      return [key(object), { labels, annotations, type: 'type' in object ? object.type : undefined, data }];
    }),
  );
  return { objects, versions };
}

/** The `config` of a cluster Secret: what is PEM in base64 becomes PEM. */
function clusterConfig(text: string): unknown {
  return JSON.parse(text, (key, value) =>
    ['caData', 'certData', 'keyData'].includes(key) ? Buffer.from(value, 'base64').toString() : value,
  );
}

function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, each) => (typeof each === 'string' ? normalized(each) : each));
}

const times = [
  /\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\b/g,
  /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g,
  /\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC/g,
];

function normalized(text: string): string {
  const described = text
    .replace(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g, description)
    .replace(
      /-----BEGIN (\w+ )?PRIVATE KEY-----[^-]+-----END (\w+ )?PRIVATE KEY-----/g,
      (_, kind = '') => `<${kind}key>`,
    )
    .replace(/\b[0-9a-f]{64}\b/g, '<hash>')
    .replace(/\b[0-9A-F]{64}\b/g, '<HASH>');
  return times.reduce((all, form, index) => all.replace(form, (time) => `<${index}:${days(time)}>`), described);
}

/** A certificate in words, without what is wanted to differ: its number, its first minutes, what an authority is for. */
function description(pem: string): string {
  const { serialNumber: _, fingerprint: __, notBefore, notAfter, usages, ...rest } = inspectCertificate(pem);
  const term = { notBefore: days(notBefore), notAfter: days(notAfter) };
  return `<certificate ${JSON.stringify({ ...rest, ...term, usages: rest.isAuthority ? 'any' : usages })}>`;
}

function days(time: string | Date): string {
  const at = typeof time === 'string' ? Date.parse(time.replace(' +0000 UTC', 'Z')) : time.getTime();
  return `${Math.round((at - Date.now()) / 86_400_000)} days`;
}
