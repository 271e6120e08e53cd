import { expect, test } from 'vitest';
import { type Application, annotations } from '../index.ts';
import { Lab } from '../testing/lab.ts';
import { incoming } from './testing/alone.ts';
import { ownApplication, StageAgent } from './testing/stage.ts';

// What an agent reports to a principal of argocd-agent. That one writes every report to the mirror, with its operation, but
// without any when the report is a `create`. It sends some of what it wrote back, as if a user had changed the mirror.

const local = { namespace: 'argocd', name: 'shop' };
const operation = { sync: { revision: 'one' } };
const running = { phase: 'Running', operation, startedAt: 't' };

/** An agent whose Application the principal mirrors. */
async function mirrored(rest: Partial<Application> = {}) {
  const lab = new Lab();
  const agent = new StageAgent(lab);
  agent.cluster.objects.create(ownApplication({}, rest));
  agent.connect();
  await lab.run(5_000);
  agent.sent.length = 0;
  const mirror = (more: Partial<Application> = {}, marks: Readonly<Record<string, string>> = {}): Application => {
    const sourceUid = agent.application()?.metadata.uid ?? '';
    const metadata = {
      name: 'shop',
      namespace: 'a',
      uid: 'm',
      annotations: { [annotations.sourceUid]: sourceUid, ...marks },
    };
    return { ...ownApplication(), ...more, metadata };
  };
  /** The reports since the last call. */
  const reports = () =>
    agent.sent.splice(0).map((message) => {
      const { type, object } = message as { type: string; object: Application };
      return [type, object.operation, object.status?.operationState?.phase];
    });
  return { lab, agent, mirror, reports };
}

test('a sync that is requested on the mirror is on the mirror as long as it runs, and each state is reported once', async () => {
  const { lab, agent, mirror, reports } = await mirrored();
  // The principal sends the rest of the mirror before the operation.
  agent.receive(incoming('spec-update', mirror()));
  agent.receive(incoming('set-operation', mirror({ operation })));
  await lab.run();
  expect(reports()).toEqual([['spec-update', operation, undefined]]);
  agent.cluster.objects.patch(local, { status: { operationState: running } });
  await lab.run();
  expect(reports()).toEqual([['spec-update', operation, 'Running']]);
  agent.receive(incoming('terminate-operation', mirror({ operation, status: { operationState: running } })));
  await lab.run();
  expect(reports()).toEqual([['spec-update', operation, 'Terminating']]);
  agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Failed' } } });
  await lab.run(60_000);
  expect(reports()).toEqual([['spec-update', undefined, 'Failed']]);
});

test('a refresh is reported once when it is requested, and once when it is answered', async () => {
  const { lab, agent, mirror, reports } = await mirrored();
  agent.receive(incoming('spec-update', mirror({}, { [annotations.refresh]: 'normal' })));
  await lab.run();
  expect(reports()).toHaveLength(1);
  agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.refresh]: null } } });
  await lab.run(60_000);
  expect(reports()).toEqual([['spec-update', undefined, undefined]]);
});

test('what the principal sends back is no request, and no news', async () => {
  const { lab, agent, mirror, reports } = await mirrored({ operation, status: { operationState: running } });
  const echo = mirror({ operation, status: { operationState: running } });
  agent.receive(incoming('spec-update', echo));
  agent.receive(incoming('set-operation', echo));
  await lab.run();
  expect(reports()).toEqual([]);
  expect(agent.cluster.writes).toBe(0);
  agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Succeeded' } } });
  await lab.run();
  agent.receive(incoming('set-operation', echo));
  await lab.run(60_000);
  expect(agent.application()?.operation, 'it is not run again').toBeUndefined();
  // The mirror had the operation, so it is told that there is none.
  expect(reports()).toEqual([
    ['spec-update', undefined, 'Succeeded'],
    ['spec-update', undefined, 'Succeeded'],
  ]);
});

test('a request without effect is answered by an update, which leaves the mirror its operation', async () => {
  const { lab, agent, mirror, reports } = await mirrored({ operation });
  agent.receive(incoming('terminate-operation', mirror({ status: { operationState: running } })));
  await lab.run(60_000);
  expect(reports()).toEqual([['spec-update', operation, undefined]]);
});
