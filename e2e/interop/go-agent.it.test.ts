import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { namespaces } from '../../lib/kube/index.ts';
import { type ArgoObject, applications, mapAgent, type PrincipalHub, startHub } from '../pair/index.ts';
import { seededRandom } from './dice.ts';
import { fastPace } from './event-writer.ts';
import { acknowledgementOf, extensionOf, type GoEvent, payloadOf, targetOf, typeOf } from './go-event.ts';
import { GoManagedAgent } from './go-managed-agent.ts';
import { GoPeer } from './go-peer.ts';
import { makeMaterial } from './material.ts';
import { meaningOf } from './meaning.ts';
import { hasRecordings } from './recordings.ts';
import { type GoObject, recordedEvent } from './templates.ts';

// Our principal, as a process on a real API server, and a managed agent of the original.

vi.setConfig({ testTimeout: 30_000 });
const agentName = 'agent-managed';
const toAgent = { dir: 'principal->agent', agent: agentName, target: 'application' } as const;

describe.skipIf(!hasRecordings)('our principal and a managed Go agent (only where ../shared is)', () => {
  const random = seededRandom();
  let go: GoPeer;
  let hub: PrincipalHub;
  let agent: GoManagedAgent;

  beforeAll(async () => {
    [go, hub] = await Promise.all([GoPeer.start(), startHub()]);
    const { client } = hub.hub;
    await Promise.all([mapAgent(client, agentName), client.create(namespaces, { metadata: { name: agentName } })]);
    const material = await makeMaterial(hub.authority);
    const tls = await material.client(agentName);
    agent = new GoManagedAgent({
      go,
      address: `127.0.0.1:${hub.principalPort}`,
      tls,
      name: agentName,
      pace: fastPace,
      random,
    });
    hub.principal.start();
    await connected();
  });
  afterAll(async () => {
    agent?.disconnect();
    await Promise.all([go?.stop(), hub?.stop()]);
  });

  const details = () => `seed ${random.seed}\n${hub.principal.output.slice(-4_000)}`;
  const until = <T>(check: () => T | Promise<T>): Promise<T> =>
    vi.waitFor(check, { timeout: 15_000, interval: 10 }).catch((error) => {
      throw new Error(`${error instanceof Error ? error.message : error}\n${details()}`, { cause: error });
    });
  /** Connects as soon as the principal serves. */
  const connected = () => vi.waitFor(() => agent.connect(), { timeout: 20_000, interval: 50 });
  const onHub = (name: string) => hub.hub.client.get(applications, { name, namespace: agentName });
  const local = (name: string) => agent.cluster.application.get(name);
  const edit = (name: string, patch: object) =>
    hub.hub.client.mergePatch(applications, { name, namespace: agentName }, patch);

  /** The recorded object as a user would have made it, under another name. */
  function asMade(recorded: GoObject, name: string): ArgoObject {
    const { labels, annotations, finalizers } = recorded.metadata;
    const metadata = { name, namespace: agentName, ...JSON.parse(JSON.stringify({ labels, annotations, finalizers })) };
    return { metadata, spec: recorded.spec ?? {} };
  }

  /** The events of one resource that came after a moment. */
  function eventsAbout(name: string, after = 0): GoEvent[] {
    return agent.stream.received.slice(after).filter((event) => payloadOf<GoObject>(event)?.metadata?.name === name);
  }

  const types = (events: readonly GoEvent[]) =>
    [...new Set(events.map((event) => extensionOf(event, 'eventid')))].map((id) =>
      typeOf(events.find((event) => extensionOf(event, 'eventid') === id) as GoEvent),
    );

  /** Everything that the agent sent is acknowledged, each with all extensions of what it acknowledges. */
  async function acknowledged(): Promise<void> {
    await until(() => expect(agent.stream.writer.unacknowledged.map(typeOf)).toEqual([]));
    await until(() => expect(agent.stream.writer.isIdle).toBe(true));
    const acknowledgements = agent.stream.events('eventProcessed');
    for (const event of agent.stream.sent.filter((each) => targetOf(each) !== 'eventProcessed')) {
      const ids = (each: GoEvent) => `${extensionOf(each, 'resourceid')} ${extensionOf(each, 'eventid')}`;
      const [ours] = acknowledgements.filter(
        (each) => ids(each) === ids(event) && extensionOf(each, 'sentat') === extensionOf(event, 'sentat'),
      );
      expect(ours).toEqual(acknowledgementOf(event, ''));
    }
  }

  async function deployed(name: string, made: ArgoObject): Promise<ArgoObject> {
    const object = await hub.hub.client.create(applications, made);
    await until(() =>
      expect(local(name)?.metadata.annotations?.['argocd.argoproj.io/source-uid']).toBe(object.metadata.uid),
    );
    return object;
  }

  test('connect: is asked to tell what it holds, once, and everything it says is acknowledged', async () => {
    const which = {
      dir: 'principal->agent',
      agent: agentName,
      target: 'resourceResync',
      type: 'request-resource-resync',
    } as const;
    const asked = () => agent.stream.events('resourceResync');
    await until(() => expect(asked().length).toBeGreaterThan(0));
    expect(asked().map(meaningOf)).toEqual([meaningOf(recordedEvent('app-managed', which))]);
    agent.beat();
    await acknowledged();
    expect(agent.stream.refused).toEqual([]);
  });

  test('create, status, spec-update, sync, delete: as recorded', async () => {
    const name = 'guestbook';
    const recorded = (type: string, nth = 0) => recordedEvent('app-managed', { ...toAgent, type, nth });
    const creation = recorded('create');
    const begin = agent.stream.received.length;
    await deployed(name, asMade(payloadOf<GoObject>(creation) as GoObject, name));
    expect(eventsAbout(name, begin).map(meaningOf)).toEqual([meaningOf(creation)]);

    const reported = recordedEvent('app-managed', {
      dir: 'agent->principal',
      agent: agentName,
      target: 'application',
      type: 'status-update',
    });
    const { status } = payloadOf<GoObject>(reported) as GoObject;
    agent.change(name, (object) => Object.assign(object, { status }));
    await until(async () => expect((await onHub(name))?.status).toEqual(status));
    await acknowledged();
    // The principal's own writing is no news for the agent.
    expect(types(eventsAbout(name, begin))).toEqual(['create']);

    const updated = recorded('spec-update');
    const before = agent.stream.received.length;
    const { metadata, spec } = payloadOf<GoObject>(updated) as GoObject;
    await edit(name, {
      metadata: { labels: metadata.labels ?? null, annotations: metadata.annotations ?? null },
      spec,
    });
    await until(() => expect(local(name)?.spec?.info).toEqual(spec?.info));
    expect(eventsAbout(name, before).map(meaningOf)).toEqual([meaningOf(updated)]);
    await acknowledged();

    const operation = recorded('set-operation');
    const beforeSync = agent.stream.received.length;
    await edit(name, { operation: payloadOf<GoObject>(operation)?.operation });
    await until(() => expect(local(name)?.operation).toBeDefined());
    const [ours] = eventsAbout(name, beforeSync).filter((event) => typeOf(event) === 'set-operation');
    expect(withoutState(ours as GoEvent)).toEqual(withoutState(operation));
    expect(types(eventsAbout(name, beforeSync)).filter((type) => type === 'set-operation')).toHaveLength(1);

    const running = recordedEvent('app-managed', {
      dir: 'agent->principal',
      agent: agentName,
      target: 'application',
      type: 'status-update',
      where: ({ operation: requested }) => requested !== undefined,
    });
    agent.change(name, (object) => Object.assign(object, { status: payloadOf<GoObject>(running)?.status }));
    await until(async () => expect((await onHub(name))?.status?.operationState).toMatchObject({ phase: 'Running' }));
    const succeeded = recordedEvent('app-managed', {
      dir: 'agent->principal',
      agent: agentName,
      target: 'application',
      type: 'status-update',
      where: ({ status: now }) => JSON.stringify(now).includes('Succeeded'),
    });
    agent.change(name, (object) => {
      delete object.operation;
      Object.assign(object, { status: payloadOf<GoObject>(succeeded)?.status });
    });
    await until(async () =>
      expect(await onHub(name)).toMatchObject({ status: { operationState: { phase: 'Succeeded' } } }),
    );
    await until(async () => expect((await onHub(name))?.operation).toBeUndefined());
    expect(types(eventsAbout(name, beforeSync)).filter((type) => type === 'set-operation')).toHaveLength(1);
    await acknowledged();

    const beforeDelete = agent.stream.received.length;
    await hub.hub.client.delete(applications, { name, namespace: agentName });
    await until(() => expect(local(name)).toBeUndefined());
    const [gone] = eventsAbout(name, beforeDelete).filter((event) => typeOf(event) === 'delete');
    expect(identityOf(gone as GoEvent)).toEqual(identityOf(recorded('delete')));
    expect(agent.stream.refused).toEqual([]);
  });

  /** An event that requests something: of the object only who it is and what is requested is looked at. */
  function withoutState(event: GoEvent) {
    const { payload, ...rest } = meaningOf(event);
    const { metadata, operation } = payload as GoObject;
    const { name, namespace, uid } = metadata;
    return { ...rest, payload: { name, namespace, uid, operation } };
  }

  /** A deletion: receivers look at who it is. */
  function identityOf(event: GoEvent) {
    const { payload, ...rest } = withoutState(event);
    const { operation: _, ...identity } = payload;
    return { ...rest, payload: identity };
  }
});
