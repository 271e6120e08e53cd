import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mapAgent, type PrincipalHub, startHub } from '../../e2e/pair/index.ts';
import { namespaces } from '../../lib/kube/index.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { runCtl } from '../testing/run-ctl.ts';

let hub: PrincipalHub;
let folder: string;
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  hub = await startHub();
  folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  const agent = 'conformance';
  const { certificate, key } = await issueCertificate({
    authority: hub.authority,
    commonName: agent,
    usages: ['client'],
  });
  writeFileSync(file('cert'), certificate);
  writeFileSync(file('key'), key);
  writeFileSync(file('ca'), hub.authority.certificate);
  await Promise.all([
    mapAgent(hub.hub.client, agent),
    hub.hub.client.create(namespaces, { metadata: { name: agent } }),
  ]);
  hub.principal.start();
  await hub.principal.says(/principal serves agents/);
});
afterAll(async () => {
  await hub?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('our principal passes all of it', { timeout: 240_000 }, async () => {
  const material = ['--client-cert', file('cert'), '--client-key', file('key'), '--ca', file('ca')];
  const address = `127.0.0.1:${hub.principalPort}`;
  const run = await runCtl(['conformance', 'principal', address, ...material, '-o', 'json']);
  const report = JSON.parse(run.out || '{}') as { cases?: { outcome: string; name: string }[] };
  const others = report.cases?.filter(({ outcome }) => outcome !== 'passed');
  expect(others, `${run.err}\n${hub.principal.output.slice(-3_000)}`).toEqual([]);
  expect(report.cases?.length).toBeGreaterThan(35);
  expect(run.code).toBe(0);
});
