import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../../e2e/pair/index.ts';
import { until } from '../../lib/base/testing.ts';
import { contextsOf } from '../testing/contexts.ts';
import { type Sitting, sit } from '../testing/terminal.ts';

// The views that follow a fleet, before a real pair: principal and agent as processes. The tests play Argo CD.

/** What steers a terminal. */
const steers = new RegExp(`${String.fromCharCode(27)}\\[\\S*?[A-Za-z]`, 'g');

let pair: Pair;
let sides: readonly string[];
const open: Sitting[] = [];
const start = async (where: 'terminal' | 'pipe', line: string) => {
  const sitting = await sit(where, [...line.split(' '), ...sides]);
  open.push(sitting);
  return sitting;
};
beforeAll(async () => {
  pair = await startPair({ name: 'east' });
  sides = [`--kubeconfig=${await contextsOf({ hub: pair.hub, east: pair.managed })}`, '--principal-context=hub'];
});
afterEach(() => Promise.all(open.splice(0).map((sitting) => sitting.kill())));
afterAll(() => pair?.stop());

/** An Application of the agent on the hub. */
const create = (name: string) => pair.hub.client.create(pairApplications, application({ name, namespace: 'east' }));

/** What Argo CD does with the copy on the cluster. */
const works = (name: string, status: object) =>
  until('the copy to take it', async () => {
    await pair.managed.client.mergePatch(pairApplications, { namespace, name }, { status });
    return true;
  });
const synced = () => ({
  reconciledAt: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  sync: { status: 'Synced', revision: 'abc' },
  health: { status: 'Healthy' },
});

describe.each(['pipe', 'terminal'] as const)('with its output in a %s', (where) => {
  const isTerminal = where === 'terminal';

  test('status --watch shows changes as they come, and ends with Ctrl-C', async () => {
    const status = await start(where, 'status --watch');
    const row = (applications: number, state = 'connected') =>
      new RegExp(`east +${state} +managed +\\S+ +${applications} `);
    const before = await pair.hub.client.list(pairApplications, { namespace: 'east' });
    let at = await status.shows(row(before.length));
    await create(`watched-${where}`);
    at = await status.shows(row(before.length + 1), at);
    await pair.agent.stop();
    at = await status.shows(row(before.length + 1, 'disconnected'), at);
    pair.agent.start();
    await status.shows(row(before.length + 1), at);
    const { code, settings } = await status.interrupt();
    expect(code).toBe(0);
    expect(settings).toEqual(isTerminal ? [settings[0], settings[0]] : []);
    // It clears a terminal before each view, and nothing else; a pipe gets text alone, views apart by an empty line.
    const steering = [...new Set(status.output().match(steers) ?? [])];
    expect(steering).toEqual(isTerminal ? ['\u001b[H', '\u001b[2J'] : []);
    expect(/\n\nCLUSTER/.test(status.output())).toBe(!isTerminal);
  });

  test('status --watch -o json prints a document for each change', async () => {
    const status = await start(where, 'status --watch -o json');
    const at = await status.shows('"cluster": "east"');
    await create(`document-${where}`);
    await status.shows('"cluster": "east"', at);
    expect((await status.interrupt()).code).toBe(0);
    const documents = status
      .output()
      .split(/^\}\r?$/m)
      .slice(0, -1)
      .map((text) => JSON.parse(`${text.slice(text.indexOf('{'))}}`));
    const counts = documents.map(({ clusters }) => clusters[0].applications);
    expect(counts.at(-1)).toBe(counts[0] + 1);
  });

  test('trace --follow goes with a change until it has arrived', async () => {
    const name = `followed-${where}`;
    await create(name);
    const trace = await start(where, `trace ${name} --follow --agent-context east`);
    let at = await trace.shows(/It waits at compared/);
    await works(name, { ...synced(), sync: { status: 'OutOfSync' }, health: { status: 'Missing' } });
    at = await trace.shows(/It waits at synced: OutOfSync/, at);
    await works(name, { ...synced(), health: { status: 'Progressing' } });
    at = await trace.shows(/It waits at healthy: Progressing/, at);
    await works(name, synced());
    await trace.shows(/✓ +reported[\s\S]*It has arrived\./, at);
    expect(await trace.ended()).toBe(0);
    expect(trace.output().match(steers)).toBeNull();
  });

  test('trace --follow that is stopped by Ctrl-C says that the change has not arrived', async () => {
    const name = `stopped-${where}`;
    await create(name);
    const trace = await start(where, `trace ${name} --follow --agent-context east`);
    await trace.shows(/It waits at/);
    const { code, settings } = await trace.interrupt();
    expect(code).toBe(130);
    expect(settings).toEqual(isTerminal ? [settings[0], settings[0]] : []);
  });
});

test('a reader that goes away ends status --watch', async () => {
  const status = await start('pipe', 'status --watch');
  await status.shows('east');
  status.hangUp();
  await create('unread');
  expect(await status.ended()).toBe(0);
  expect(status.output()).not.toContain('EPIPE');
});
