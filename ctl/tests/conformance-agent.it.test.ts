import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Pair, pairApplications, pairAppProjects, startPair } from '../../e2e/pair/index.ts';
import { secrets } from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { runCtl } from '../testing/run-ctl.ts';

let pair: Pair | undefined;
let folder: string | undefined;
afterEach(async () => {
  await pair?.stop();
  rmSync(folder ?? '', { recursive: true, force: true });
  [pair, folder] = [undefined, undefined];
});

const modes = [
  { mode: 'managed' as const, most: 2 },
  { mode: 'autonomous' as const, most: 8 },
];
const timeout = 400_000;

test.each(modes)('a $mode agent, ours', { timeout }, (each) => passes(each));

test.each(modes)('a $mode agent, of argocd-agent', { timeout, tags: 'argocd-agent' }, (each) =>
  passes({ ...each, agent: process.env.ARGOCD_AGENT_BIN }),
);

async function passes({ agent, mode, most }: (typeof modes)[number] & { agent?: string | undefined }): Promise<void> {
  const started = await startPair({ agent: { mode }, idle: true, originals: { agent } });
  pair = started;
  folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const file = (name: string, text: string) => {
    const path = join(folder ?? '', name);
    writeFileSync(path, text);
    return path;
  };
  const { authority, principalPort } = started;
  const { certificate, key } = await issueCertificate({
    authority,
    commonName: 'principal',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  const run = runCtl([
    ...['conformance', 'agent', '--listen', `127.0.0.1:${principalPort}`, '-o', 'json'],
    ...['--cert', file('cert', certificate), '--key', file('key', key)],
    ...['--client-ca', file('ca', authority.certificate)],
  ]);
  started.agent.start();
  const { code, out, err } = await run;
  const report = JSON.parse(out || '{}') as { cases?: { outcome: string; name: string; seen: string }[] };
  const said = `${err}\n${started.agent.output.slice(-3_000)}`;
  if (process.env.SHOW_REPORT) {
    console.log(JSON.stringify(report.cases, null, 1));
  }
  expect(
    report.cases?.filter(({ outcome }) => outcome === 'failed'),
    said,
  ).toEqual([]);
  expect(report.cases?.filter(({ outcome }) => outcome === 'skipped').length).toBeLessThanOrEqual(most);
  expect(report.cases?.length).toBeGreaterThan(15);
  expect(code).toBe(0);
  // Nothing of the suite stays.
  const { client } = started.managed;
  const left = [
    await client.list(pairApplications),
    await client.list(pairAppProjects),
    await client.list(secrets),
  ].flat();
  expect(left.filter(({ metadata }) => metadata.name.startsWith('conformance-'))).toEqual([]);
}
