import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { namespaces } from '../../lib/kube/index.ts';
import { type ArgoObject, namespace, pairApplications } from '../pair/index.ts';
import { allAcknowledged, asMade, eventsAbout } from './checks.ts';
import { type GoEvent, goPayload, typeOf } from './go-event.ts';
import { agentName, type ManagedLab, startManagedLab } from './managed-lab.ts';
import { deletionOf, meaningOf } from './meaning.ts';
import { type GoObject, recordedEvent } from './templates.ts';

// Destination-based mapping: our principal and a managed agent of the original that keeps the namespaces of the hub.

const toAgent = { dir: 'principal->agent', agent: agentName, target: 'application' } as const;
const recorded = (type: string) =>
  recordedEvent('dest-mapping', { ...toAgent, type, where: ({ metadata }) => metadata.name === 'destmap-test-app' });

describe('destination-based mapping with a Go agent', () => {
  let lab: ManagedLab;
  beforeAll(async () => {
    lab = await startManagedLab({ destinationMapping: true });
    await lab.hub.hub.client.create(namespaces, { metadata: { name: 'test-namespace' } });
  });
  afterAll(() => lab?.stop());

  const client = () => lab.hub.hub.client;
  const copy = (name: string) => lab.agent.cluster.application.get(name);
  const acknowledged = () => allAcknowledged(lab.agent.stream, '', lab.until);
  const create = (object: GoObject) => client().create(pairApplications, object as never as ArgoObject);

  test('an Application of any namespace goes to the agent that its destination names, and back: as recorded', async () => {
    const name = 'destmap-test-app';
    const where = { name, namespace: 'test-namespace' };
    const creation = recorded('create');
    await create(asMade(goPayload<GoObject>(creation), name, where.namespace));
    await lab.until(() => expect(copy(name)?.metadata.namespace).toBe(where.namespace));
    expect(eventsAbout(lab.agent.stream, name).map(meaningOf)).toEqual([meaningOf(creation)]);
    const status = { health: { status: 'Healthy' } };
    lab.agent.change(name, (object) => Object.assign(object, { status }));
    await lab.until(async () => expect((await client().get(pairApplications, where))?.status).toEqual(status));
    await acknowledged();
    await client().delete(pairApplications, where);
    await lab.until(() => expect(copy(name)).toBeUndefined());
    const [gone] = eventsAbout(lab.agent.stream, name).filter((event) => typeOf(event) === 'delete');
    expect(deletionOf(gone as GoEvent)).toEqual(deletionOf(recorded('delete')));
    expect(lab.agent.stream.refused).toEqual([]);
  });

  test("the principal's own namespace is the agent's there; status, restarts and deletion find the way back", async () => {
    const name = 'moved';
    const where = { name, namespace };
    const made = asMade(goPayload<GoObject>(recorded('create')), name, namespace);
    await create(made);
    await lab.until(() => expect(copy(name)?.metadata.namespace).toBe(lab.agent.namespace));
    lab.agent.change(name, (object) => Object.assign(object, { status: { health: { status: 'Progressing' } } }));
    await lab.until(async () =>
      expect((await client().get(pairApplications, where))?.status).toEqual({ health: { status: 'Progressing' } }),
    );
    await acknowledged();
    lab.agent.restart();
    await lab.connect();
    await acknowledged();
    expect(eventsAbout(lab.agent.stream, name), 'nothing differs').toEqual([]);
    await client().mergePatch(pairApplications, where, { spec: { destination: { name: 'another-agent' } } });
    await lab.until(() => expect(copy(name)).toBeUndefined());
    await acknowledged();
  });
});
