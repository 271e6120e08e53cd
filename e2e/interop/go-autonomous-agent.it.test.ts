import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admitAgent,
  namespace,
  type PrincipalHub,
  pairApplications,
  pairAppProjects,
  startHub,
} from '../pair/index.ts';
import { allAcknowledged, asMade, eventsAbout, type Until, untilWith } from './checks.ts';
import { seededRandom } from './dice.ts';
import { fastPace } from './event-writer.ts';
import { GoAutonomousAgent } from './go-autonomous-agent.ts';
import { changed, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import { GoPeer } from './go-peer.ts';
import { makeMaterial } from './material.ts';
import { meaningOf, requestOf, withoutZeros } from './meaning.ts';
import { type GoObject, recordedEvent, type Which } from './templates.ts';

// Our principal, as a process on a real API server, driven by an autonomous agent of the original.

const agentName = 'agent-autonomous';
const wish = 'argocd.argoproj.io/refresh';
const sourceUid = 'argocd.argoproj.io/source-uid';
const toAgent = { dir: 'principal->agent', agent: agentName, target: 'application' } as const;
const fromAgent = { dir: 'agent->principal', agent: agentName, target: 'application' } as const;
const recorded = (which: Omit<Which, 'dir' | 'agent' | 'target'> & Partial<Which>, recording = 'app-autonomous') =>
  recordedEvent(recording, { ...toAgent, ...which });
const theirs = (type: string, where?: (object: GoObject) => boolean, recording = 'app-autonomous') =>
  goPayload<GoObject>(
    recordedEvent(recording, { ...fromAgent, type, ...(where === undefined ? {} : { where }) }),
  ) as GoObject;
const isIn =
  (phase: string) =>
  ({ status }: GoObject) =>
    JSON.stringify(status).includes(`"phase":"${phase}"`);

describe('our principal and an autonomous Go agent', () => {
  const random = seededRandom();
  let go: GoPeer;
  let hub: PrincipalHub;
  let agent: GoAutonomousAgent;
  let until: Until;

  beforeAll(async () => {
    [go, hub] = await Promise.all([GoPeer.start(), startHub()]);
    const { client } = hub.hub;
    until = untilWith(() => `seed ${random.seed}\n${agent.stream.story}\n${hub.principal.output.slice(-4_000)}`);
    await admitAgent(client, agentName);
    const tls = await (await makeMaterial(hub.authority)).client(agentName);
    const address = `127.0.0.1:${hub.principalPort}`;
    agent = new GoAutonomousAgent({ go, address, tls, name: agentName, pace: fastPace, random });
    hub.principal.start();
    await connect();
  });
  afterAll(async () => {
    agent?.disconnect();
    await Promise.all([go?.stop(), hub?.stop()]);
  });

  const connect = () => until(() => agent.connect());
  const now = () => agent.stream.received.length;
  const about = (name: string, from = 0) => eventsAbout(agent.stream, name, from);
  const acknowledged = () => allAcknowledged(agent.stream, '', until);
  const onHub = (name: string) => hub.hub.client.get(pairApplications, { name, namespace: agentName });
  const edit = (name: string, patch: object) =>
    hub.hub.client.mergePatch(pairApplications, { name, namespace: agentName }, patch);
  const project = (name: string) => hub.hub.client.get(pairAppProjects, { name: `${agentName}-${name}`, namespace });
  const typesOf = (events: readonly GoEvent[]) => events.map(typeOf);

  async function mirrored(name: string) {
    const made = agent.create('application', asMade(theirs('create'), name));
    await until(async () => expect((await onHub(name))?.metadata.annotations?.[sourceUid]).toBe(made.metadata.uid));
    return made;
  }

  test('connect: is asked for what it has, as recorded, and everything it says is acknowledged', async () => {
    const asked = () => agent.stream.events('resourceResync');
    await until(() => expect(asked().map(typeOf)).toContain('request-synced-resource-list'));
    await acknowledged();
    const list = recorded({ type: 'request-synced-resource-list', target: 'resourceResync' });
    const ours = asked().filter((event) => typeOf(event) === 'request-synced-resource-list');
    // Nothing is mirrored yet: `""` and `null` are the same bytes to Go.
    const nothing = (event: GoEvent) => ({
      ...meaningOf(event),
      payload: { checksum: goPayload(event)?.checksum || null },
    });
    expect(ours.map(nothing)).toEqual([nothing(list)]);
    expect(agent.harm).toEqual([]);
  });

  test('an Application becomes the recorded mirror, follows every change, and goes', async () => {
    const name = 'guestbook';
    const made = await mirrored(name);
    const { status } = theirs('spec-update');
    agent.change('application', name, (object) => Object.assign(object, { status }));
    await until(async () => expect((await onHub(name))?.status).toEqual(status));
    // What the original's principal had made of it shows in what it sent back.
    const mirror = goPayload<GoObject>(recorded({ type: 'spec-update' })) as GoObject;
    const ours = (await onHub(name)) as unknown as GoObject;
    expect(withoutZeros(ours.spec)).toEqual(withoutZeros(mirror.spec));
    expect(withoutZeros(ours.status)).toEqual(withoutZeros(mirror.status));
    expect(ours.metadata.finalizers).toEqual(mirror.metadata.finalizers);
    const marks = Object.keys(mirror.metadata.annotations ?? {});
    expect(Object.keys(ours.metadata.annotations ?? {})).toEqual(expect.arrayContaining(marks));
    expect(ours.metadata.annotations?.[sourceUid]).toBe(made.metadata.uid);
    await acknowledged();
    agent.delete('application', name);
    await until(async () => expect(await onHub(name)).toBeUndefined());
    await acknowledged();
    // Nobody asked for anything, so there was nothing to tell the agent.
    expect(typesOf(about(name))).toEqual([]);
  });

  test('refresh, sync and terminate on the mirror reach the agent as recorded, each once', async () => {
    const name = 'requests';
    await mirrored(name);
    await acknowledged();
    const fromRefresh = now();
    await edit(name, { metadata: { annotations: { [wish]: 'normal' } } });
    await until(() => expect(local(name)?.metadata.annotations?.[wish]).toBe('normal'));
    const hasWish = ({ metadata }: GoObject) => metadata.annotations?.[wish] !== undefined;
    const asked = about(name, fromRefresh).filter((event) => hasWish(goPayload<GoObject>(event) as GoObject));
    expect(asked.map(attributesOf)).toEqual([
      attributesOf(named(recorded({ type: 'spec-update', where: hasWish }, 'refresh'), name)),
    ]);
    agent.change('application', name, ({ metadata }) => delete metadata.annotations?.[wish]);
    await until(async () => expect((await onHub(name))?.metadata.annotations?.[wish]).toBeUndefined());

    const fromSync = now();
    const sync = recorded({ type: 'set-operation' });
    await edit(name, { operation: goPayload<GoObject>(sync)?.operation });
    await until(() => expect(local(name)?.operation).toBeDefined());
    const syncs = () => about(name, fromSync).filter((event) => typeOf(event) === 'set-operation');
    expect(syncs().map(requestOf)).toEqual([requestOf(named(sync, name))]);
    const { status } = theirs('spec-update', ({ operation }) => operation !== undefined);
    agent.change('application', name, (object) => Object.assign(object, { status }));
    await until(async () =>
      expect(await onHub(name)).toMatchObject({ status: { operationState: { phase: 'Running' } } }),
    );

    const fromTerminate = now();
    await edit(name, { status: { operationState: { phase: 'Terminating' } } });
    await until(() => expect(local(name)?.status?.operationState).toMatchObject({ phase: 'Terminating' }));
    const ends = about(name, fromTerminate).filter((event) => typeOf(event) === 'terminate-operation');
    expect(ends.map(attributesOf)).toEqual([
      attributesOf(named(recorded({ type: 'terminate-operation' }, 'terminate'), name)),
    ]);
    agent.change('application', name, (object) => {
      delete object.operation;
      Object.assign(object, { status: theirs('spec-update', isIn('Succeeded')).status });
    });
    await until(async () =>
      expect(await onHub(name)).toMatchObject({ status: { operationState: { phase: 'Succeeded' } } }),
    );
    await until(async () => expect((await onHub(name))?.operation).toBeUndefined());
    await acknowledged();
    expect(syncs()).toHaveLength(1);
    expect(agent.harm).toEqual([]);
  });

  test('what became of a request may come before its acknowledgement: in one tick, in any order', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `quick-${index}`);
    for (const name of names) {
      await mirrored(name);
    }
    await acknowledged();
    for (const name of names) {
      await edit(name, { metadata: { annotations: { [wish]: 'normal' } } });
      await until(() => expect(local(name)?.metadata.annotations?.[wish]).toBeDefined());
      agent.change('application', name, ({ metadata }) => delete metadata.annotations?.[wish]);
    }
    for (const name of names) {
      await until(async () => expect((await onHub(name))?.metadata.annotations?.[wish], name).toBeUndefined());
    }
    await acknowledged();
  });

  test('a mirror is protected: edits and deletions on the hub are undone, and the agent is not harmed', async () => {
    const name = 'protected';
    const { metadata } = await mirrored(name);
    const before = await onHub(name);
    await edit(name, { spec: { project: 'mine' } });
    await until(async () => expect((await onHub(name))?.spec).toEqual(before?.spec));
    await hub.hub.client.delete(pairApplications, { name, namespace: agentName });
    await until(async () => {
      const again = await onHub(name);
      expect(again?.metadata.uid).not.toBe(before?.metadata.uid);
      expect(again?.metadata.annotations?.[sourceUid]).toBe(metadata.uid);
    });
    await acknowledged();
    expect(local(name)).toBeDefined();
    expect(agent.harm).toEqual([]);
  });

  test('an AppProject is mirrored under the prefixed name, follows changes, and goes', async () => {
    const creation = (type: string) =>
      goPayload<GoObject>(
        recordedEvent('appproject', {
          ...fromAgent,
          target: 'appproject',
          type,
          where: ({ metadata }) => metadata.name === 'sample',
        }),
      ) as GoObject;
    const { metadata } = agent.create('appproject', asMade(creation('create'), 'sample'));
    await until(async () => expect((await project('sample'))?.metadata.annotations?.[sourceUid]).toBe(metadata.uid));
    expect(await project('sample')).toMatchObject({
      spec: {
        sourceNamespaces: [agentName],
        destinations: [
          {
            name: agentName,
            server: `https://argocd-agent-resource-proxy:9090\\?agentName=${agentName}`,
            namespace: '*',
          },
        ],
      },
    });
    agent.change('appproject', 'sample', ({ spec }) =>
      Object.assign(spec ?? {}, { description: 'sample description' }),
    );
    await until(async () => expect((await project('sample'))?.spec.description).toBe('sample description'));
    agent.delete('appproject', 'sample');
    await until(async () => expect(await project('sample')).toBeUndefined());
    await acknowledged();
    expect(agent.harm).toEqual([]);
  });

  test('the agent restarts: what changed meanwhile is mirrored', async () => {
    for (const name of ['stays', 'changes', 'goes']) {
      await mirrored(name);
    }
    await acknowledged();
    agent.disconnect();
    agent.cluster.application.delete('goes');
    Object.assign(local('changes')?.spec ?? {}, { info: [{ name: 'while', value: 'away' }] });
    agent.restart();
    await connect();
    await until(async () => expect((await onHub('changes'))?.spec.info).toEqual([{ name: 'while', value: 'away' }]));
    await until(async () => expect(await onHub('goes')).toBeUndefined());
    await acknowledged();
    expect((await onHub('stays'))?.metadata.annotations?.[sourceUid]).toBe(local('stays')?.metadata.uid);
    expect(agent.harm).toEqual([]);
  });

  test('the principal restarts: it tells what it mirrors, as recorded, and learns what changed', async () => {
    for (const name of ['remains', 'differs', 'vanishes']) {
      await mirrored(name);
    }
    await acknowledged();
    await hub.principal.stop('SIGKILL');
    agent.disconnect();
    Object.assign(local('differs')?.spec ?? {}, { info: [{ name: 'while', value: 'down' }] });
    agent.cluster.application.delete('vanishes');
    const from = now();
    hub.principal.start();
    await connect();
    await until(async () => expect((await onHub('differs'))?.spec.info).toEqual([{ name: 'while', value: 'down' }]));
    await until(async () => expect(await onHub('vanishes')).toBeUndefined());
    await acknowledged();
    const told = agent.stream.received.slice(from).filter((event) => targetOf(event) === 'resourceResync');
    const list = recorded(
      { type: 'request-synced-resource-list', target: 'resourceResync', where: (payload) => payload.checksum !== '' },
      'resync',
    );
    const sums = told
      .filter((event) => typeOf(event) === 'request-synced-resource-list')
      .map((event) => ({ ...meaningOf(event), payload: {} }));
    expect(sums[0]).toEqual({ ...meaningOf(list), payload: {} });
    const updates = told.filter((event) => typeOf(event) === 'request-update' && goPayload(event)?.name === 'remains');
    const theirUpdate = recorded({ type: 'request-update', target: 'resourceResync' }, 'resync');
    const uid = local('remains')?.metadata.uid;
    // Without a checksum the agent reports it in any case: the hub may have refused what the process before acknowledged.
    const payload = { name: 'remains', namespace: agentName, uid, kind: 'Application', checksum: null };
    expect(meaningOf(updates[0] as GoEvent)).toEqual({ ...meaningOf(theirUpdate), payload });
    expect(agent.harm).toEqual([]);
  });

  const local = (name: string) => agent.cluster.application.get(name);
});

/** The event about another object of the same namespace. */
function named(event: GoEvent, name: string): GoEvent {
  const object = goPayload<GoObject>(event) as GoObject;
  const { namespace: where = '', uid = '', resourceVersion = '' } = object.metadata;
  return changed(event, {
    strings: {
      subject: `${where}/${name}`,
      resourceid: `${name}_${uid}`,
      eventid: `${name}_${uid}_${resourceVersion}`,
    },
    payload: { ...object, metadata: { ...object.metadata, name } },
  });
}

/** Everything about an event but its payload. */
function attributesOf(event: GoEvent): unknown {
  const { payload: _, ...rest } = meaningOf(event);
  return rest;
}
