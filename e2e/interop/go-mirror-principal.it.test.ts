import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ArgoObject,
  namespace,
  type Program,
  pairApplications,
  pairAppProjects,
  startAgentCluster,
} from '../pair/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';
import { allAcknowledged, asMade, eventsAbout, type Until, untilWith } from './checks.ts';
import { seededRandom } from './dice.ts';
import { fastPace } from './event-writer.ts';
import { changed, extensionOf, type GoEvent, goPayload, typeOf } from './go-event.ts';
import { recordedVersion } from './go-listener.ts';
import { GoMirrorPrincipal } from './go-mirror-principal.ts';
import { GoPeer } from './go-peer.ts';
import { makeMaterial } from './material.ts';
import { deletionOf, meaningOf } from './meaning.ts';
import { aboutObject, type GoObject, recordedEvent, type Which } from './templates.ts';

// Our autonomous agent, as a process on a real API server, and a principal of the original.

const agentName = 'agent-autonomous';
const wish = 'argocd.argoproj.io/refresh';
const sourceUid = 'argocd.argoproj.io/source-uid';
const fromAgent = { dir: 'agent->principal', agent: agentName } as const;
const recorded = (which: Omit<Which, 'dir' | 'agent'>, recording = 'app-autonomous') =>
  recordedEvent(recording, { ...fromAgent, ...which });
const theirs = (which: Omit<Which, 'dir' | 'agent'>, recording?: string) =>
  goPayload<GoObject>(recorded(which, recording)) as GoObject;

describe('our autonomous agent and a Go principal', () => {
  const random = seededRandom();
  let go: GoPeer;
  let cluster: SharedCluster;
  let principal: GoMirrorPrincipal;
  let agent: Program;
  let until: Until;

  beforeAll(async () => {
    const [peer, material] = await Promise.all([GoPeer.start(), makeMaterial()]);
    go = peer;
    principal = new GoMirrorPrincipal({ go, tls: material.server, pace: fastPace, random, agent: agentName });
    await principal.listener.start();
    const server = Number(principal.listener.address.split(':')[1]);
    ({ cluster, agent } = await startAgentCluster(
      { name: agentName, authority: material.authority, server, mode: 'autonomous' },
      borrowCluster,
    ));
    until = untilWith(() => `seed ${random.seed}\n${principal.stream.story}\n${agent.output.slice(-4_000)}`);
    agent.start();
    await agent.says(/Connected to the principal/);
  });
  afterAll(async () => {
    await agent?.stop('SIGKILL');
    await principal?.listener.stop();
    await Promise.all([go?.stop(), cluster?.stop()]);
  });

  const now = () => principal.stream.received.length;
  const about = (name: string, from = 0) => eventsAbout(principal.stream, name, from);
  const acknowledged = () => allAcknowledged(principal.stream, 'agent://agent-managed', until);
  const onCluster = (name: string): Promise<ArgoObject | undefined> =>
    cluster.client.get(pairApplications, { name, namespace });
  const patch = (name: string, change: object) =>
    cluster.client.mergePatch(pairApplications, { name, namespace }, change);
  const mirror = (name: string) => principal.hub.application.get(name);

  async function made(name: string) {
    const object = asMade(theirs({ target: 'application', type: 'create' }), name, namespace);
    const local = await cluster.client.create(pairApplications, object as never as ArgoObject);
    await until(() => expect(mirror(name)?.metadata.annotations?.[sourceUid]).toBe(local.metadata.uid));
    return local;
  }

  /** What the original would send about this object. */
  function expectLike(
    ours: GoEvent | undefined,
    which: Omit<Which, 'dir' | 'agent'>,
    object: ArgoObject,
    recording?: string,
  ): void {
    expect(ours).toBeDefined();
    const event = ours as GoEvent;
    const sentat = extensionOf(event, 'sentat');
    const expected = aboutObject(recorded(which, recording), object as unknown as GoObject);
    expect(meaningOf(event)).toEqual(meaningOf(changed(expected, { strings: { sentat } })));
  }

  test('connect: tells its mode, takes over the version, and asks to be asked, as recorded', async () => {
    expect(principal.listener.logins.at(-1)).toEqual({
      method: 'mtls',
      mode: 'autonomous',
      version: recordedVersion,
      agentNamespace: namespace,
    });
    const told = () => principal.stream.events('resourceResync');
    await until(() => expect(told().map(typeOf)).toContain('request-resource-resync'));
    const [ours] = told().filter((event) => typeOf(event) === 'request-resource-resync');
    expect(meaningOf(ours as GoEvent)).toEqual(
      meaningOf(recorded({ target: 'resourceResync', type: 'request-resource-resync' })),
    );
    await acknowledged();
  });

  test('create, spec-update and delete of Applications and AppProjects: as recorded', async () => {
    const name = 'guestbook';
    const from = now();
    const local = await made(name);
    expectLike(about(name, from)[0], { target: 'application', type: 'create' }, local);
    const { status } = theirs({ target: 'application', type: 'spec-update' });
    const changedLocal = await patch(name, { status });
    await until(() => expect(mirror(name)?.status).toEqual(status));
    expectLike(about(name, from).at(-1), { target: 'application', type: 'spec-update' }, changedLocal);
    await patch(name, { metadata: { finalizers: null } });
    const last = await onCluster(name);
    await cluster.client.delete(pairApplications, { name, namespace });
    await until(() => expect(mirror(name)).toBeUndefined());
    const gone = about(name, from).filter((event) => typeOf(event) === 'delete');
    const theirDelete = changed(
      aboutObject(recorded({ target: 'application', type: 'delete' }), last as unknown as GoObject),
      {
        strings: { sentat: extensionOf(gone[0] as GoEvent, 'sentat') },
      },
    );
    expect(deletionOf(gone[0] as GoEvent)).toEqual(deletionOf(theirDelete));

    const isSample = ({ metadata }: GoObject) => metadata.name === 'sample';
    const which = { target: 'appproject', type: 'create', where: isSample };
    const fromProject = now();
    const project = await cluster.client.create(
      pairAppProjects,
      asMade(theirs(which, 'appproject'), 'sample', namespace) as never as ArgoObject,
    );
    await until(() => expect(principal.hub.appproject.has(`${agentName}-sample`)).toBe(true));
    // Ours names the identity of a project, and has the principal create it by an update.
    const named = (object: ArgoObject): ArgoObject => {
      const { uid = '', annotations, ...metadata } = object.metadata;
      return { ...object, metadata: { ...metadata, uid, annotations: { ...annotations, [sourceUid]: uid } } };
    };
    expectLike(about('sample', fromProject)[0], { ...which, type: 'spec-update' }, named(project), 'appproject');
    const described = await cluster.client.mergePatch(
      pairAppProjects,
      { name: 'sample', namespace },
      { spec: { description: 'x' } },
    );
    await until(() => expect(principal.hub.appproject.get(`${agentName}-sample`)?.spec?.description).toBe('x'));
    expectLike(about('sample', fromProject).at(-1), { ...which, type: 'spec-update' }, named(described), 'appproject');
    await cluster.client.delete(pairAppProjects, { name: 'sample', namespace });
    await until(() => expect(principal.hub.appproject.has(`${agentName}-sample`)).toBe(false));
    await acknowledged();
    expect(principal.stream.refused).toEqual([]);
  });

  test('refresh, sync and terminate arrive, whatever else the mirror says', async () => {
    const name = 'requests';
    const local = await made(name);
    principal.request(name, 'spec-update', ({ metadata, spec }) => {
      metadata.annotations = { ...metadata.annotations, [wish]: 'hard' };
      Object.assign(spec ?? {}, { project: 'of-the-hub' });
    });
    await until(async () => expect((await onCluster(name))?.metadata.annotations?.[wish]).toBe('hard'));
    expect((await onCluster(name))?.spec).toEqual(local.spec);
    await patch(name, { metadata: { annotations: { [wish]: null } } });
    await until(() => expect(mirror(name)?.metadata.annotations?.[wish]).toBeUndefined());
    await acknowledged();
    const from = now();
    const operation = { sync: { syncStrategy: { hook: {} } }, initiatedBy: { username: 'e2e' } };
    principal.request(name, 'set-operation', (object) => Object.assign(object, { operation }));
    await until(async () => expect((await onCluster(name))?.operation).toEqual(operation));
    await patch(name, {
      status: { operationState: { phase: 'Running', operation, startedAt: '2026-11-21T09:00:00Z' } },
    });
    await until(() => expect(mirror(name)?.status?.operationState).toMatchObject({ phase: 'Running' }));
    expect(mirror(name)?.operation, 'users can terminate it').toEqual(operation);
    principal.echo(name);
    await acknowledged();
    principal.request(name, 'terminate-operation', ({ status }) =>
      Object.assign(status?.operationState ?? {}, { phase: 'Terminating' }),
    );
    await until(async () =>
      expect((await onCluster(name))?.status?.operationState).toMatchObject({ phase: 'Terminating' }),
    );
    await patch(name, { operation: null, status: { operationState: { phase: 'Failed' } } });
    await until(() => expect(mirror(name)?.operation).toBeUndefined());
    await until(() => expect(mirror(name)?.status?.operationState).toMatchObject({ phase: 'Failed' }));
    await acknowledged();
    const reported = about(name, from).map((event) => {
      const { operation, status } = goPayload<GoObject>(event) ?? {};
      return [typeOf(event), operation !== undefined, (status?.operationState as { phase?: string })?.phase];
    });
    expect(reported, 'each state once').toEqual([
      ['spec-update', true, undefined],
      ['spec-update', true, 'Running'],
      ['spec-update', true, 'Terminating'],
      ['spec-update', false, 'Failed'],
    ]);
  });

  test('what only an agent that is managed takes does no harm', async () => {
    const name = 'unharmed';
    const local = await made(name);
    await acknowledged();
    const before = await onCluster(name);
    const forged = { metadata: { ...local.metadata, uid: 'x' }, spec: { project: 'forged' } } as unknown as GoObject;
    const template = recordedEvent('app-managed', { dir: 'principal->agent', target: 'application', type: 'create' });
    for (const type of ['create', 'delete']) {
      principal.stream.writer.add({ ...aboutObject(template, forged), type: `io.argoproj.argocd-agent.event.${type}` });
      await acknowledged();
    }
    for (const [recording, target] of [
      ['appproject', 'appproject'],
      ['repository', 'repository'],
      ['gpgkey', 'gpgkey'],
    ] as const) {
      const event = recordedEvent(recording, {
        dir: 'principal->agent',
        agent: 'agent-managed',
        target,
        type: 'create',
      });
      principal.stream.writer.add(changed(event, { strings: { sentat: undefined } }));
    }
    await acknowledged();
    expect(await onCluster(name)).toEqual(before);
    expect(await cluster.client.get(pairAppProjects, { name: 'sample', namespace })).toBeUndefined();
  });

  test('the principal restarts with gaps: it has everything again afterwards', async () => {
    for (const name of ['kept', 'lost', 'other']) {
      await made(name);
    }
    const team = { metadata: { name: 'team', namespace }, spec: { description: 'right' } };
    await cluster.client.create(pairAppProjects, team as never as ArgoObject);
    const teamMirror = () => principal.hub.appproject.get(`${agentName}-team`);
    await until(() => expect(teamMirror()?.spec?.description).toBe('right'));
    await acknowledged();
    await principal.restart(() => {
      Object.assign(teamMirror()?.spec ?? {}, { description: 'wrong' });
      principal.hub.application.delete('lost');
      Object.assign(principal.mirror('other').spec ?? {}, { info: [{ name: 'wrong', value: 'wrong' }] });
      principal.hub.application.set('phantom', {
        ...structuredClone(principal.mirror('kept')),
        metadata: { name: 'phantom', namespace: agentName, annotations: { [sourceUid]: 'gone' } },
      });
    });
    await until(() => expect(principal.isConnected).toBe(true));
    await until(() => expect(mirror('other')?.spec?.info).toBeUndefined());
    await until(() => expect(mirror('phantom')).toBeUndefined());
    await until(() => expect(mirror('lost')).toBeDefined());
    await until(() => expect(teamMirror()?.spec?.description).toBe('right'));
    expect(principal.stream.refused).toEqual([]);
    await acknowledged();
    const answers = about('other').filter((event) => typeOf(event) === 'spec-update');
    expectLike(answers[0], { target: 'application', type: 'spec-update' }, (await onCluster('other')) as ArgoObject);
    const listed = principal.stream
      .events('resourceResync')
      .filter((event) => typeOf(event) === 'response-synced-resource');
    // Only what the principal did not name itself; the original lists everything.
    const lost = listed.find((event) => goPayload(event)?.name === 'lost');
    const theirAnswer = recorded({ target: 'resourceResync', type: 'response-synced-resource' }, 'resync');
    const uid = (await onCluster('lost'))?.metadata.uid;
    expect(meaningOf(lost as GoEvent)).toEqual({
      ...meaningOf(theirAnswer),
      payload: { name: 'lost', namespace, uid, kind: 'Application' },
    });
  });

  test('the agent restarts: what changed meanwhile is told', async () => {
    await made('edited');
    await made('removed');
    await acknowledged();
    await agent.stop('SIGKILL');
    await patch('edited', { spec: { info: [{ name: 'while', value: 'away' }] } });
    await patch('removed', { metadata: { finalizers: null } });
    await cluster.client.delete(pairApplications, { name: 'removed', namespace });
    agent.start();
    await until(() => expect(mirror('edited')?.spec?.info).toEqual([{ name: 'while', value: 'away' }]));
    await until(() => expect(mirror('removed')).toBeUndefined());
    await acknowledged();
  });
});
