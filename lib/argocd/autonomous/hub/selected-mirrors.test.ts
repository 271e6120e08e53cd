import { expect, test } from 'vitest';
import { labelCompletion, labelSelector } from '../../../base/index.ts';
import type { Application, ApplicationMessage } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { join, ownApplication, StageAgent, StagePrincipal } from '../testing/stage.ts';

// A principal whose cache has only what a label selector selects.

const selector = 'team=x';
const selects = labelSelector(selector);
const labelsOf = labelCompletion(selector);
const isHidden = ({ metadata }: Application) => !selects(metadata.labels ?? {});

function selecting() {
  const lab = new Lab();
  lab.hub.isHidden = isHidden;
  const shown = new Set<string>();
  lab.hub.subscribe(({ old, now }) => {
    const name = (now ?? old)?.metadata.name ?? '';
    if (now === undefined) {
      shown.delete(name);
    } else {
      shown.add(name);
    }
  });
  return { lab, shown };
}

let events = 0;
const say = (type: 'create' | 'spec-update', object: Application): ApplicationMessage => ({
  target: 'application',
  type,
  resourceId: object.metadata.name,
  eventId: `e${events++}`,
  object,
});

test.each<[string, Record<string, string>]>([
  ['takes away', {}],
  ['changes', { team: 'y' }],
])('an agent that %s the label does not take its mirror out of the selection', async (_, labels) => {
  const { lab, shown } = selecting();
  const principal = new StagePrincipal(lab, { labelsOf });
  principal.connect();
  principal.receive(say('create', ownApplication({ uid: 'u', labels: { team: 'x' } })));
  await lab.run(1_000);
  principal.receive(say('spec-update', ownApplication({ uid: 'u', labels: { ...labels, other: 'z' } })));
  await lab.run(1_000);
  expect(principal.mirror()?.metadata.labels).toEqual({ team: 'x', other: 'z' });
  expect([...shown]).toEqual(['shop']);
  expect(principal.failures).toEqual([]);
});

test('an Application without the label has a mirror with it, which is neither written nor sent again and again', async () => {
  const { lab, shown } = selecting();
  const principal = new StagePrincipal(lab, { labelsOf });
  const agent = new StageAgent(lab);
  agent.cluster.objects.create(ownApplication());
  let cut = join(lab, principal, agent);
  await lab.run(1_000);
  expect([...shown]).toEqual(['shop']);
  const { resourceVersion } = principal.mirror()?.metadata ?? {};
  cut();
  const sent = agent.sent.length;
  cut = join(lab, principal, agent);
  await lab.run(1_000);
  expect(principal.mirror()?.metadata.resourceVersion).toBe(resourceVersion);
  expect(agent.sent.slice(sent).filter(({ target }) => target === 'application')).toEqual([]);
  agent.cluster.objects.delete({ namespace: 'argocd', name: 'shop' }, { propagation: 'Background' });
  await lab.run(1_000);
  expect(principal.mirror()).toBeUndefined();
  cut();
});

test('a mirror that an earlier version made without the label gets it', async () => {
  const { lab, shown } = selecting();
  const former = new StagePrincipal(lab);
  const agent = new StageAgent(lab);
  agent.cluster.objects.create(ownApplication());
  const cut = join(lab, former, agent);
  await lab.run(1_000);
  cut();
  former.stop.abort();
  const { uid } = former.mirror()?.metadata ?? {};
  expect([...shown]).toEqual([]);
  const principal = new StagePrincipal(lab, { labelsOf });
  join(lab, principal, agent);
  await lab.run(1_000);
  expect(principal.mirror()?.metadata).toMatchObject({ uid, labels: { team: 'x' } });
  expect([...shown]).toEqual(['shop']);
});

test('what no labels would bring into the selection is not mirrored, and the reason is told', async () => {
  const { lab } = selecting();
  const principal = new StagePrincipal(lab, { labelsOf: labelCompletion('team=x,team=y') });
  principal.connect();
  principal.receive(say('create', ownApplication({ uid: 'u' })));
  await lab.run(1_000);
  expect(principal.mirror()).toBeUndefined();
  expect(principal.failures.map(({ message }) => message)).toEqual([expect.stringContaining('--label-selector')]);
});
