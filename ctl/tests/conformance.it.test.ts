import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { admitAgent, type PrincipalHub, startHub } from '../../e2e/pair/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { runCtl } from '../testing/run-ctl.ts';

const original = process.env.ARGOCD_AGENT_BIN || undefined;
let hub: PrincipalHub | undefined;
let folder = '';
const file = (name: string) => join(folder, name);

async function start(principal: string | undefined): Promise<PrincipalHub> {
  const started = await startHub({ original: principal });
  hub = started;
  folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const agent = 'conformance';
  const { certificate, key } = await issueCertificate({
    authority: started.authority,
    commonName: agent,
    usages: ['client'],
  });
  writeFileSync(file('cert'), certificate);
  writeFileSync(file('key'), key);
  writeFileSync(file('ca'), started.authority.certificate);
  await admitAgent(started.hub.client, agent);
  started.principal.start();
  await started.principal.says(/principal serves agents|Now listening on|listening/i);
  return started;
}
afterEach(async () => {
  await hub?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the suite; its cases that did not pass, and how it ended. */
async function conformance({ principalPort }: PrincipalHub, ...more: string[]) {
  const material = ['--client-cert', file('cert'), '--client-key', file('key'), '--ca', file('ca')];
  const run = await runCtl([
    'conformance',
    'principal',
    `127.0.0.1:${principalPort}`,
    ...material,
    ...more,
    '-o',
    'json',
  ]);
  const report = JSON.parse(run.out || '{}') as { cases?: { outcome: string; name: string; seen: string }[] };
  if (process.env.SHOW_REPORT) {
    console.log(JSON.stringify(report.cases, null, 1));
  }
  return { ...run, cases: report.cases ?? [], others: report.cases?.filter(({ outcome }) => outcome !== 'passed') };
}

test('our principal passes all of it', { timeout: 240_000 }, async () => {
  const started = await start(undefined);
  const { others, cases, err, code } = await conformance(started);
  expect(others, `${err}\n${started.principal.output.slice(-3_000)}`).toEqual([]);
  expect(cases.length).toBeGreaterThan(35);
  expect(code).toBe(0);
});

test('of argocd-agent the principal passes all but what docs/protocol.md says of it', {
  timeout: 400_000,
  tags: 'argocd-agent',
}, async () => {
  const started = await start(original);
  const { others, cases, err } = await conformance(started, '--skip', 'an answer that nobody waits for');
  const said = `${err}\n${started.principal.output.slice(-3_000)}`;
  expect(
    others?.map(({ name }) => name),
    said,
  ).toEqual([
    // It runs without Redis here, which has the cache.
    'the size of the cache of a cluster is acknowledged',
    // It runs without resource proxy, whose port nobody can choose: such an answer ends its process.
    'an answer that nobody waits for is acknowledged',
    'a message that is no protobuf does no lasting harm',
  ]);
  expect(cases.length).toBeGreaterThan(35);
});
