import { mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ChaosFinding, tracesOf } from '../chaos/index.ts';
import type { Program } from '../pair/index.ts';
import { type LoadedFleet, startLoadedFleet } from './loaded-fleet.ts';
import { executableOf, sincePrevious, sourcesOf, type TestedVersion } from './previous.ts';

// Principal and agents of the version before become this version, and back, while users change Applications and ask for
// syncs. What must be so at every stop is in docs/upgrades.md.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/** About two thirds of it are accepted changes: one cannot ask for a sync while another one runs. */
const attemptsPerSecond = 30;
const report: string[] = [];

describe(`a fleet under load (SEED=${seed}) ${sincePrevious}`, { tags: 'version-before' }, () => {
  let folder: string;
  let fleet: LoadedFleet;
  const link = (program: string) => join(folder, program);
  const executable = (version: TestedVersion) => join(folder, `${version}-argocd-agent`);

  /** What the program is from its next start on. */
  async function choose(program: 'principal' | 'agent', version: TestedVersion): Promise<void> {
    await symlink(executable(version), link(`${program}-next`));
    await rename(link(`${program}-next`), link(program));
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rolling-'));
    const sources = await sourcesOf();
    for (const version of ['previous', 'current'] as const) {
      await executableOf('argocd-agent', sources[version], executable(version));
    }
    await choose('principal', 'previous');
    await choose('agent', 'previous');
    fleet = await startLoadedFleet({
      executables: { principal: link('principal'), agent: link('agent') },
      seed,
      attemptsPerSecond,
      applications: 15,
    });
  });
  afterAll(async () => {
    console.log(report.join('\n'));
    await fleet?.stop();
    await rm(folder, { recursive: true });
  });

  /** The program ends as it is told to, and starts as what its executable is now. */
  async function restart(program: Program): Promise<void> {
    expect(await program.stop('SIGTERM')).toBe(0);
    program.start();
  }

  /** What the version before did wrong for good, by itself: no change of ours can take it back. */
  const ofPrevious = new Set<string>();
  /**
   * Both programs are of the version before, and answer for all; or the agents alone, which run a sync once more that a principal
   * repeats when it has started again, whatever its version.
   */
  const faultsOf = {
    previous: () => true,
    'previous agents': ({ invariant }: ChaosFinding) => invariant === 'twice',
  };

  async function underLoad(what: string, act: () => Promise<void>, by?: keyof typeof faultsOf): Promise<void> {
    const { changes, seconds, longestMs } = await fleet.during(act);
    const rate = (changes / seconds).toFixed(0);
    report.push(`${what}: ${changes} changes, ${rate}/s, the slowest arrived after ${(longestMs / 1000).toFixed(1)} s`);
    const all = await fleet.findings();
    const isOfPrevious = by === undefined ? () => false : faultsOf[by];
    for (const one of all.filter(({ isFinal }) => isFinal).filter(isOfPrevious)) {
      ofPrevious.add(one.what);
      report.push(`${what}: ${one.what}`);
    }
    const findings = all.filter((one) => !ofPrevious.has(one.what));
    const said = findings.map((one) => one.what);
    const { principal, agents } = fleet;
    const programs = Object.entries({ principal, ...agents }).map(([name, { output }]) => ({ name, output }));
    expect(findings, [...said, ...tracesOf(findings, programs)].join('\n')).toEqual([]);
  }

  async function replacePrincipal(version: TestedVersion): Promise<void> {
    await choose('principal', version);
    const { principal, agents } = fleet;
    const after = principal.output.length;
    const before = Object.values(agents).map(({ output }) => output.length);
    await restart(principal);
    await Promise.all(
      Object.values(agents).map((agent, index) =>
        agent.says(/Connected to the principal/, { after: before[index] ?? 0 }),
      ),
    );
    await principal.says(/An agent is connected/, { after });
  }

  async function replaceAgents(version: TestedVersion): Promise<void> {
    await choose('agent', version);
    for (const agent of Object.values(fleet.agents)) {
      const after = agent.output.length;
      await restart(agent);
      await agent.says(/Connected to the principal/, { after });
    }
  }

  test('nothing changes: the previous version by itself', async () => {
    await underLoad('previous version, at rest', async () => undefined, 'previous');
  });

  test('a restart of the previous principal, for comparison', async () => {
    await underLoad('principal restarts', () => replacePrincipal('previous'), 'previous');
  });

  test.each<readonly [string, () => Promise<void>, 'previous agents' | undefined]>([
    ['principal: previous → current, agents previous', () => replacePrincipal('current'), 'previous agents'],
    ['agents: previous → current, principal current', () => replaceAgents('current'), undefined],
    ['principal: current → previous, agents current', () => replacePrincipal('previous'), undefined],
    ['agents: current → previous, principal previous', () => replaceAgents('previous'), undefined],
  ])('%s', async (what, act, by) => {
    await underLoad(what, act, by);
  });

  test('syncs were asked for', () => {
    report.push(`${fleet.syncs} syncs were asked for, each ran once`);
    expect(fleet.syncs).toBeGreaterThan(20);
  });
});
