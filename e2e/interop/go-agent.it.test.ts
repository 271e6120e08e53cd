import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configMaps, secrets } from '../../lib/kube/index.ts';
import { namespace, pairApplications, pairAppProjects } from '../pair/index.ts';
import { messageBytes } from '../recordings/index.ts';
import { allAcknowledged, asMade, eventsAbout } from './checks.ts';
import { changed, extensionOf, type GoEvent, goPayload, targetOf, typeOf } from './go-event.ts';
import { agentName, type ManagedLab, startManagedLab } from './managed-lab.ts';
import { deletionOf, meaningOf, requestOf } from './meaning.ts';
import { recordedEvents } from './recordings.ts';
import { type GoObject, recordedEvent, type Which, withPayload } from './templates.ts';

// Our principal, as a process on a real API server, driven by a managed agent of the original.

const wish = 'argocd.argoproj.io/refresh';
const toAgent = { dir: 'principal->agent', agent: agentName, target: 'application' } as const;
const fromAgent = { dir: 'agent->principal', agent: agentName, target: 'application' } as const;
const recorded = (type: string, more: Partial<Which> = {}, recording = 'app-managed') =>
  recordedEvent(recording, { ...toAgent, type, ...more });
const typesOf = (events: readonly GoEvent[]) => events.map(typeOf);

/** The status that Argo CD had written when the recorded agent reported it. */
function recordedStatus(fits: (object: GoObject) => boolean, recording = 'app-managed') {
  const reported = recordedEvent(recording, { ...fromAgent, type: 'status-update', where: fits });
  return goPayload<GoObject>(reported)?.status;
}
const isRunning = ({ operation }: GoObject) => operation !== undefined;
const isIn =
  (phase: string) =>
  ({ status }: GoObject) =>
    JSON.stringify(status).includes(`"phase":"${phase}"`);

describe('our principal and a managed Go agent', () => {
  let lab: ManagedLab;
  beforeAll(async () => {
    lab = await startManagedLab();
  });
  afterAll(() => lab?.stop());

  const stream = () => lab.agent.stream;
  const now = () => stream().received.length;
  const about = (name: string, from = 0) => eventsAbout(stream(), name, from);
  const copy = (name: string) => lab.agent.cluster.application.get(name);
  const remove = (name: string) => lab.hub.hub.client.delete(pairApplications, { name, namespace: agentName });
  const acknowledged = () => allAcknowledged(stream(), '', lab.until);
  /** Argo CD on the cluster changes fields of the Application, or takes them away. */
  const argo = (name: string, fields: Partial<Record<keyof GoObject, unknown>>) =>
    lab.agent.change(name, (object) => {
      for (const [field, value] of Object.entries(fields)) {
        if (value === undefined) {
          delete object[field];
        } else {
          object[field] = value;
        }
      }
    });

  /** Waits until the agent refused something, and has done with it. */
  async function refusals(reason: string): Promise<void> {
    await lab.until(() => expect(stream().refused.map((each) => each.reason)).toEqual([reason]));
    stream().refused.length = 0;
  }

  test('connect: is asked to tell what it holds, once, and everything it says is acknowledged', async () => {
    const which = { target: 'resourceResync' };
    await lab.until(() => expect(stream().events('resourceResync')).toHaveLength(1));
    lab.agent.beat();
    await acknowledged();
    const asked = stream().events('resourceResync').map(meaningOf);
    expect(asked).toEqual([meaningOf(recorded('request-resource-resync', which))]);
    expect(stream().refused).toEqual([]);
  });

  test('create, status, spec-update, sync, delete: as recorded', async () => {
    const name = 'guestbook';
    const from = now();
    await lab.deploy(name);
    expect(about(name, from).map(meaningOf)).toEqual([meaningOf(recorded('create'))]);

    const status = recordedStatus(() => true);
    argo(name, { status });
    await lab.until(async () => expect((await lab.onHub(name))?.status).toEqual(status));
    await acknowledged();
    // The principal's own writing is no news for the agent.
    expect(typesOf(about(name, from))).toEqual(['create']);

    const fromEdit = now();
    const update = recorded('spec-update');
    const { spec } = goPayload<GoObject>(update) as GoObject;
    await lab.edit(name, { spec });
    await lab.until(() => expect(copy(name)?.spec?.info).toEqual(spec?.info));
    expect(about(name, fromEdit).map(meaningOf)).toEqual([meaningOf(update)]);
    await acknowledged();

    const fromSync = now();
    const sync = recorded('set-operation');
    await lab.edit(name, { operation: goPayload<GoObject>(sync)?.operation });
    await lab.until(() => expect(copy(name)?.operation).toBeDefined());
    const requests = () => about(name, fromSync).filter((event) => typeOf(event) === 'set-operation');
    expect(requests().map(requestOf)).toEqual([requestOf(sync)]);
    argo(name, { status: recordedStatus(isRunning) });
    await lab.until(async () =>
      expect(await lab.onHub(name)).toMatchObject({ status: { operationState: { phase: 'Running' } } }),
    );
    argo(name, { status: recordedStatus(isIn('Succeeded')), operation: undefined });
    await lab.until(async () =>
      expect(await lab.onHub(name)).toMatchObject({ status: { operationState: { phase: 'Succeeded' } } }),
    );
    await lab.until(async () => expect((await lab.onHub(name))?.operation).toBeUndefined());
    await acknowledged();
    expect(requests()).toHaveLength(1);

    const fromDelete = now();
    await remove(name);
    await lab.until(() => expect(copy(name)).toBeUndefined());
    const [gone] = about(name, fromDelete).filter((event) => typeOf(event) === 'delete');
    expect(deletionOf(gone as GoEvent)).toEqual(deletionOf(changedName(recorded('delete'), name)));
    expect(stream().refused).toEqual([]);
  });

  test('refresh: the wish is told once and taken off the hub when Argo CD has taken it up', async () => {
    const name = 'rf';
    await lab.deploy(name);
    await acknowledged();
    const from = now();
    await lab.edit(name, { metadata: { annotations: { [wish]: 'normal' } } });
    await lab.until(() => expect(copy(name)?.metadata.annotations?.[wish]).toBe('normal'));
    const hasWish = ({ metadata }: GoObject) => metadata.annotations?.[wish] !== undefined;
    const told = about(name, from);
    const theirs = goPayload<GoObject>(recorded('spec-update', { where: hasWish }, 'refresh'));
    expect(typesOf(told)).toEqual(['spec-update']);
    expect(goPayload<GoObject>(told[0] as GoEvent)?.metadata.annotations?.[wish]).toBe(
      theirs?.metadata.annotations?.[wish],
    );
    lab.agent.change(name, ({ metadata }) => delete metadata.annotations?.[wish]);
    await lab.until(async () => expect((await lab.onHub(name))?.metadata.annotations?.[wish]).toBeUndefined());
    await acknowledged();
    expect(copy(name)?.metadata.annotations?.[wish]).toBeUndefined();
  });

  test('what became of a request may come before its acknowledgement: in one tick, in any order', async () => {
    const operation = { sync: { revision: 'x' } };
    const names = Array.from({ length: 12 }, (_, index) => `quick-${index}`);
    for (const name of names) {
      await lab.deploy(name);
    }
    await acknowledged();
    for (const [index, name] of names.entries()) {
      await lab.edit(name, index % 2 === 0 ? { metadata: { annotations: { [wish]: 'normal' } } } : { operation });
      // As soon as the agent has it, Argo CD has done it.
      await lab.until(() => expect(copy(name)?.metadata.annotations?.[wish] ?? copy(name)?.operation).toBeDefined());
      lab.agent.change(name, (object) => {
        delete object.metadata.annotations?.[wish];
        const startedAt = new Date().toISOString();
        object.status = index % 2 === 0 ? {} : { operationState: { phase: 'Succeeded', startedAt, operation } };
        delete object.operation;
      });
    }
    for (const name of names) {
      await lab.until(async () => {
        const hub = await lab.onHub(name);
        expect(hub?.metadata.annotations?.[wish], name).toBeUndefined();
        expect(hub?.operation, name).toBeUndefined();
      });
    }
    await acknowledged();
    const repeated = names.filter(
      (name) => about(name).filter((event) => typeOf(event) === 'set-operation').length > 1,
    );
    expect(repeated).toEqual([]);
  });

  test('connections that break, acknowledgements that are lost and events that come twice change nothing', async () => {
    const name = 'shaken';
    await lab.deploy(name);
    for (let round = 0; round < 4; round += 1) {
      const info = [{ name: 'round', value: String(round) }];
      lab.agent.change(name, (object) => {
        object.status = { health: { status: 'Healthy', message: `round ${round}` } };
      });
      await lab.edit(name, { spec: { info } });
      lab.agent.disconnect();
      await lab.connect();
      // What was sent is sent again at once on the new stream, whether it had arrived or not.
      await lab.until(() => expect(copy(name)?.spec?.info).toEqual(info));
      await lab.until(async () =>
        expect(await lab.onHub(name)).toMatchObject({ status: { health: { message: `round ${round}` } } }),
      );
    }
    await acknowledged();
    const sent = stream().sent.filter((event) => goPayload<GoObject>(event)?.metadata?.name === name);
    for (const event of sent) {
      stream().writer.add(changed(event, { strings: { sentat: undefined } }));
    }
    await acknowledged();
    expect(await lab.onHub(name)).toMatchObject({ status: { health: { message: 'round 3' } } });
    expect(stream().refused).toEqual([]);
  });

  test('terminate: as recorded, once', async () => {
    const name = 'hangs';
    await lab.deploy(name);
    const operation = goPayload<GoObject>(recorded('set-operation', {}, 'terminate'))?.operation;
    await lab.edit(name, { operation });
    await lab.until(() => expect(copy(name)?.operation).toBeDefined());
    argo(name, { status: recordedStatus(isRunning, 'terminate') });
    await lab.until(async () =>
      expect(await lab.onHub(name)).toMatchObject({ status: { operationState: { phase: 'Running' } } }),
    );
    await acknowledged();
    const from = now();
    await lab.edit(name, { status: { operationState: { phase: 'Terminating' } } });
    await lab.until(() => expect(copy(name)?.status?.operationState).toMatchObject({ phase: 'Terminating' }));
    const ours = about(name, from).filter((event) => typeOf(event) === 'terminate-operation');
    expect(ours.map((event) => attributesOf(event))).toEqual([
      attributesOf(recorded('terminate-operation', {}, 'terminate'), name),
    ]);
    argo(name, { status: recordedStatus(isIn('Failed'), 'terminate'), operation: undefined });
    await lab.until(async () =>
      expect(await lab.onHub(name)).toMatchObject({ status: { operationState: { phase: 'Failed' } } }),
    );
    await acknowledged();
  });

  test('a deletion with finalizers waits for the agent, as recorded', async () => {
    const name = 'my-app';
    const finalizers = ['resources-finalizer.argocd.argoproj.io'];
    await lab.deploy(name, { finalizers });
    await acknowledged();
    const from = now();
    await remove(name);
    await lab.until(() => expect(copy(name)?.metadata.deletionTimestamp).toBeDefined());
    const isLeaving = ({ metadata }: GoObject) => metadata.deletionTimestamp !== undefined;
    const theirs = meaningOf(recorded('spec-update', { where: isLeaving }, 'delete'));
    const [first] = about(name, from);
    expect(attributesOf(first as GoEvent)).toEqual(
      attributesOf(recorded('spec-update', { where: isLeaving }, 'delete'), name),
    );
    // Which deletion it is was added by the API server, whose finalizer for foreground deletion ours has besides.
    expect(meaningOf(first as GoEvent).payload).toMatchObject({
      metadata: { deletionTimestamp: 'time', finalizers: expect.arrayContaining(finalizers) },
    });
    expect(theirs.payload).toMatchObject({ metadata: { deletionTimestamp: 'time', finalizers } });
    expect(await lab.onHub(name)).toBeDefined();
    await acknowledged();
    lab.agent.finalise(name);
    await lab.until(async () => expect(await lab.onHub(name)).toBeUndefined());
    await acknowledged();
    // The originals' principal says so too, to an agent that knows: recorded as the last word about this Application.
    const last = recordedEvents('delete', agentName).filter(
      ({ line, event }) => line.dir === toAgent.dir && targetOf(event) === 'application',
    );
    expect(typeOf((last.at(-1) as { event: GoEvent }).event)).toBe('delete');
    await refusals('not managed');
  });

  test('an Application that the agent must not take over is reported on the hub', async () => {
    const name = 'guestbook-dontadopt';
    const never = { 'argocd.argoproj.io/adoption-policy': 'never' };
    lab.agent.createLocally({ metadata: { name, annotations: never }, spec: { project: 'mine' } });
    const made = asMade(goPayload<GoObject>(recorded('create')), name, agentName);
    await lab.hub.hub.client.create(pairApplications, made as never);
    await lab.until(async () => {
      const { status } = (await lab.onHub(name)) ?? {};
      expect(status).toMatchObject({ health: { status: 'Degraded' }, conditions: [{ type: 'AgentError' }] });
    });
    expect(copy(name)?.spec).toEqual({ project: 'mine' });
    await acknowledged();
    await remove(name);
    await lab.until(() => expect(about(name).map(typeOf)).toContain('delete'));
    await acknowledged();
    await refusals('source UID annotation not found');
  });

  test('AppProjects, repositories and GPG keys: as recorded', async () => {
    const { client } = lab.hub.hub;
    const kinds = { appproject: pairAppProjects, repository: secrets, gpgkey: configMaps };
    const names = { appproject: 'sample', repository: 'test-repo-creds', gpgkey: 'argocd-gpg-keys-cm' };
    for (const target of ['appproject', 'repository', 'gpgkey'] as const) {
      const type = kinds[target] as typeof pairAppProjects;
      const name = names[target];
      const ref = { name, namespace };
      const theirs = (change: string) =>
        moved(recorded(change, { target, where: ({ metadata }) => metadata.name === name }, target));
      const ours = (change: string, from: number) =>
        about(name, from).filter((event) => typeOf(event) === change && targetOf(event) === target);
      const made = asMade(goPayload<GoObject>(theirs('create')), name, namespace);
      if (target === 'appproject') {
        Object.assign(made.spec ?? {}, onHubForm);
      }
      if (target === 'repository') {
        Object.assign(made.data ?? {}, { project: Buffer.from('sample').toString('base64') });
      }
      const from = now();
      await client.create(type, made as never);
      await lab.until(() => expect(ours('create', from)).toHaveLength(1));
      expect(ours('create', from).map((event) => meaningOf(withProject(event)))).toEqual([
        meaningOf(withProject(theirs('create'))),
      ]);

      const { spec, data } = goPayload<GoObject>(withProject(theirs('spec-update'))) as GoObject;
      const fromUpdate = now();
      await client.mergePatch(type, ref, target === 'appproject' ? { spec: { ...spec, ...onHubForm } } : { data });
      await lab.until(() => expect(ours('spec-update', fromUpdate)).toHaveLength(1));
      expect(ours('spec-update', fromUpdate).map((event) => meaningOf(withProject(event)))).toEqual([
        meaningOf(withProject(theirs('spec-update'))),
      ]);
      await acknowledged();
    }
    for (const target of ['gpgkey', 'repository', 'appproject'] as const) {
      const name = names[target];
      const from = now();
      await client.delete(kinds[target] as typeof pairAppProjects, { name, namespace });
      await lab.until(() => expect(lab.agent.cluster[target].has(name)).toBe(false));
      const [gone] = about(name, from).filter((event) => typeOf(event) === 'delete' && targetOf(event) === target);
      expect(deletionOf(gone as GoEvent)).toEqual(
        deletionOf(moved(recorded('delete', { target, where: ({ metadata }) => metadata.name === name }, target))),
      );
    }
    expect(stream().refused).toEqual([]);
  });

  test('what it may not send, or makes no sense, is acknowledged and changes nothing; the stream goes on', async () => {
    const name = 'untouched';
    const { metadata } = await lab.deploy(name);
    await acknowledged();
    const before = await lab.onHub(name);
    const { writer } = stream();
    const own = {
      name,
      namespace: 'argocd-managed',
      uid: 'x',
      resourceVersion: '1',
      annotations: { 'argocd.argoproj.io/source-uid': metadata.uid ?? '' },
    };
    const status = recordedEvent('app-managed', { ...fromAgent, type: 'status-update' });
    const payload = { metadata: own, spec: { project: 'other' }, status: { health: { status: 'Forged' } } };
    for (const type of ['create', 'spec-update', 'set-operation', 'terminate-operation', 'nonsense']) {
      writer.add({ ...withPayload(status, payload), type: `io.argoproj.argocd-agent.event.${type}` });
    }
    writer.add(withPayload(status, { ...payload, metadata: { ...own, name: 'nobody-knows' } }));
    writer.add({ ...withPayload(status), binaryData: Buffer.from('{"metadata":') });
    writer.add({ ...withPayload(status), binaryData: Buffer.alloc(0) });
    for (const dataschema of ['nonsense', 'repository', 'gpgkey', 'applicationset', 'containerlog']) {
      const event = withPayload(status, payload);
      writer.add({ ...event, attributes: new Map(event.attributes).set('dataschema', { ceUri: dataschema }) });
    }
    await acknowledged();
    expect(await lab.onHub(name)).toEqual(before);

    // Live access that nobody asked for, as recorded.
    for (const recording of ['resource-proxy', 'redis-proxy', 'logs', 'terminal']) {
      const answers = recordedEvents(recording, agentName).filter(
        ({ line, event }) => line.dir === 'agent->principal' && ['resource', 'redis'].includes(targetOf(event)),
      );
      for (const { line, event } of answers) {
        expect(messageBytes(line).length).toBeGreaterThan(0);
        const id = extensionOf(event, 'eventid');
        writer.add(changed(event, { strings: { resourceid: `${id}-${line.seq}`, sentat: undefined } }));
      }
    }
    await acknowledged();
    expect(await lab.onHub(name)).toEqual(before);
    argo(name, { status: { health: { status: 'Healthy' } } });
    await lab.until(async () => expect((await lab.onHub(name))?.status).toEqual({ health: { status: 'Healthy' } }));
  });

  test('the agent restarts: only what differs is sent', async () => {
    for (const name of ['stays', 'changes', 'goes']) {
      await lab.deploy(name);
    }
    await acknowledged();
    lab.agent.restart();
    await lab.edit('changes', { spec: { info: [{ name: 'while', value: 'away' }] } });
    await remove('goes');
    await lab.connect();
    await lab.until(() => expect(copy('changes')?.spec?.info).toEqual([{ name: 'while', value: 'away' }]));
    await lab.until(() => expect(copy('goes')).toBeUndefined());
    await acknowledged();
    expect(typesOf(about('stays'))).toEqual([]);
    const named = stream()
      .events('resourceResync')
      .filter((event) => typeOf(event) === 'response-synced-resource');
    const theirs = recorded('response-synced-resource', { target: 'resourceResync' }, 'resync');
    for (const event of named.filter((each) => goPayload(each)?.kind === 'Application')) {
      const about = goPayload<Record<string, unknown>>(event);
      const [name, uid] = [about?.name, about?.uid];
      expect({ ...meaningOf(event) }).toEqual({ ...meaningOf(theirs), payload: { ...goPayload(theirs), name, uid } });
    }
  });

  test('the principal restarts: asks what the agent holds, and sends only what differs', async () => {
    for (const name of ['remains', 'differs', 'vanishes']) {
      await lab.deploy(name);
    }
    const gone = copy('vanishes')?.metadata.annotations?.['argocd.argoproj.io/source-uid'];
    await acknowledged();
    await lab.hub.principal.stop('SIGKILL');
    lab.agent.disconnect();
    await lab.edit('differs', { spec: { info: [{ name: 'while', value: 'down' }] } });
    await remove('vanishes');
    const from = now();
    lab.hub.principal.start();
    await lab.connect();
    await lab.until(() => expect(copy('differs')?.spec?.info).toEqual([{ name: 'while', value: 'down' }]));
    await lab.until(() => expect(copy('vanishes')).toBeUndefined());
    await acknowledged();
    const asked = stream()
      .received.slice(from)
      .filter((event) => typeOf(event) === 'request-resource-resync');
    expect(new Set(asked.map((event) => JSON.stringify(meaningOf(event))))).toEqual(
      new Set([JSON.stringify(meaningOf(recorded('request-resource-resync', { target: 'resourceResync' })))]),
    );
    expect(typesOf(about('remains', from))).toEqual([]);
    expect(typesOf(about('differs', from))).toEqual(['spec-update']);
    // Nobody knows any more whether it asked for its workload: the copy loses its finalizers before it is deleted.
    const removal = about('vanishes', from);
    expect(typesOf(removal)).toEqual(['spec-update', 'delete']);
    for (const event of removal) {
      expect(goPayload<GoObject>(event)?.metadata).toMatchObject({ name: 'vanishes', uid: gone });
    }
    expect(goPayload<GoObject>(removal[0] as GoEvent)?.metadata.finalizers ?? []).toEqual([]);
    expect(stream().refused).toEqual([]);
  });
});

/** What the hub's form of the recorded AppProject has that the agent does not get to see. */
const onHubForm = {
  destinations: [
    { name: agentName, server: '*', namespace: '*' },
    { name: 'another-agent', server: '*', namespace: '*' },
  ],
  sourceNamespaces: [agentName],
};

/** The recorded event as if its hub's namespace were ours. */
function moved(event: GoEvent): GoEvent {
  const object = goPayload<GoObject>(event) as GoObject;
  const { name } = object.metadata;
  return changed(event, {
    strings: { subject: `${namespace}/${name}` },
    payload: { ...object, metadata: { ...object.metadata, namespace } },
  });
}

/** A repository of our AppProject instead of the recorded one's. */
function withProject(event: GoEvent): GoEvent {
  const object = goPayload<GoObject>(event) as GoObject;
  if (object.data?.project === undefined) {
    return event;
  }
  return changed(event, {
    payload: { ...object, data: { ...object.data, project: Buffer.from('sample').toString('base64') } },
  });
}

function changedName(event: GoEvent, name: string): GoEvent {
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
function attributesOf(event: GoEvent, name?: string): unknown {
  const { payload: _, ...rest } = meaningOf(name === undefined ? event : changedName(event, name));
  return rest;
}
