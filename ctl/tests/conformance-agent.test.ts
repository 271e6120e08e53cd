import { describe, expect, test } from 'vitest';
import type { AgentMode, AuthMethod } from '../../lib/auth/index.ts';
import { agentCases } from '../conformance/agent-cases.ts';
import { runCases } from '../conformance/case.ts';
import { AgentHost } from '../conformance/host.ts';
import { runCtl } from '../testing/run-ctl.ts';
import { type AgentFaults, runSimpleAgent } from '../testing/simple-agent.ts';

// The suite against an agent of a few lines, which does one thing wrong at a time.

const method: AuthMethod = { name: 'header', authenticate: async () => ({ agent: 'cluster1' }) };

/** Runs the suite; the names of the cases that did not pass. */
async function othersWith(
  mode: AgentMode,
  faults: AgentFaults,
  timeoutMs = 3_000,
): Promise<{ failed: string[]; skipped: number }> {
  const host = await AgentHost.start({
    address: '127.0.0.1',
    port: 0,
    tls: 'plaintext',
    method,
    version: '1.0.0',
    webSocket: false,
    timeoutMs,
    silenceMs: 150,
  });
  const ended = new AbortController();
  const agent = runSimpleAgent(host.port, mode, faults, ended.signal);
  try {
    await host.session({ timeoutMs: 60_000 });
    const results = await runCases(agentCases, host, { signal: ended.signal });
    return {
      failed: results.filter(({ outcome }) => outcome === 'failed').map(({ name, seen }) => `${name}: ${seen}`),
      skipped: results.filter(({ outcome }) => outcome === 'skipped').length,
    };
  } finally {
    ended.abort();
    await host.close();
    await agent;
  }
}

describe('an agent', { timeout: 120_000 }, () => {
  test.concurrent.each(['managed', 'autonomous'] as const)('that conforms passes: %s', async (mode) => {
    const { failed, skipped } = await othersWith(mode, {}, 30_000);
    expect(failed).toEqual([]);
    expect(skipped).toBe(mode === 'managed' ? 2 : 7);
  });

  test.concurrent.each<[AgentMode, keyof AgentFaults, RegExp]>([
    ['managed', 'bareAcknowledgements', /^an acknowledgement has all extensions/],
    ['managed', 'deafToRepetitions', /^an event that comes twice/],
    ['managed', 'ownUids', /uid is own; wanted that of the original/],
    ['managed', 'keepsAll', /after its delete: it still has/],
    ['managed', 'deafToChanges', /after its spec-update: its checksum/],
    ['managed', 'forgetful', /^what is not acknowledged comes again/],
    ['managed', 'openToAll', /^an object that belongs to no Application is refused/],
    ['autonomous', 'silentAboutAbsence', /^asked about an Application that it does not have/],
  ])('%s with the fault %s fails', async (mode, fault, what) => {
    const { failed } = await othersWith(mode, { [fault]: true });
    expect(failed.filter((one) => what.test(one))).not.toEqual([]);
  });
});

test('what is missing on the command line is said', async () => {
  const run = (...args: string[]) => runCtl(['conformance', 'agent', ...args]);
  expect((await run('--listen=here')).err).toContain('--listen: "here" is no address and port');
  expect((await run()).err).toContain('--cert and --key are needed, or --plaintext');
  expect((await run('--cert=/none', '--key=/none')).err).toContain('--cert: the file cannot be read');
});
