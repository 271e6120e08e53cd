import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configMaps, secrets } from '../../lib/kube/index.ts';
import {
  type ArgoObject,
  namespace,
  type Program,
  pairApplications,
  pairAppProjects,
  startAgentCluster,
} from '../pair/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';
import { allAcknowledged, asMade, type Until, untilWith } from './checks.ts';
import { seededRandom } from './dice.ts';
import { fastPace } from './event-writer.ts';
import { changed, extensionOf, type GoEvent, goPayload, typeOf } from './go-event.ts';
import { recordedVersion } from './go-listener.ts';
import { GoPeer } from './go-peer.ts';
import { GoPrincipal } from './go-principal.ts';
import { makeMaterial, type PeerCertificates } from './material.ts';
import { deletionOf, meaningOf, withoutZeros } from './meaning.ts';
import { aboutObject, type GoObject, goChecksum, recordedEvent } from './templates.ts';

// Our agent, as a process on a real API server, and a principal of the original.

const agentName = 'agent-managed';
const fromAgent = { dir: 'agent->principal', agent: agentName } as const;
const sourceUid = 'argocd.argoproj.io/source-uid';

describe('our managed agent and a Go principal', () => {
  const random = seededRandom();
  let go: GoPeer;
  let cluster: SharedCluster;
  let material: PeerCertificates;
  let principal: GoPrincipal;
  let agent: Program;
  let until: Until;

  beforeAll(async () => {
    [go, material] = await Promise.all([GoPeer.start(), makeMaterial()]);
    until = untilWith(() => `seed ${random.seed}\n${principal.stream.story}\n${agent.output.slice(-4_000)}`);
    principal = new GoPrincipal({ go, tls: material.server, pace: fastPace, random, agent: agentName });
    await principal.start();
    ({ cluster, agent } = await startAgentCluster(
      { name: agentName, authority: material.authority, server: Number(principal.address.split(':')[1]) },
      borrowCluster,
    ));
    agent.start();
    await agent.says(/Connected to the principal/);
  });
  afterAll(async () => {
    await agent?.stop('SIGKILL');
    await principal?.stop();
    await Promise.all([go?.stop(), cluster?.stop()]);
  });

  const local = (name: string): Promise<ArgoObject | undefined> =>
    cluster.client.get(pairApplications, { name, namespace });
  const patch = (name: string, change: object) =>
    cluster.client.mergePatch(pairApplications, { name, namespace }, change);
  const onHub = (name: string) => principal.hub.application.get(name);

  const creation = () =>
    goPayload<GoObject>(
      recordedEvent('app-managed', {
        dir: 'principal->agent',
        agent: agentName,
        target: 'application',
        type: 'create',
      }),
    );
  const reports = (name: string) =>
    principal.stream.events('application').filter((event) => goPayload<GoObject>(event)?.metadata?.name === name);

  async function deployed(name: string, object = asMade(creation(), name)): Promise<GoObject> {
    const made = principal.create('application', object);
    await until(async () => expect((await local(name))?.metadata.annotations?.[sourceUid]).toBe(made.metadata.uid));
    return made;
  }

  const acknowledged = () => allAcknowledged(principal.stream, 'agent://agent-managed', until);

  /** A status report as the original would make one of the same object: its payload is the whole object. */
  function expectReport(ours: GoEvent, object: ArgoObject): void {
    const template = recordedEvent('app-managed', { ...fromAgent, target: 'application', type: 'status-update' });
    expect(meaningOf(ours)).toEqual(meaningOf(sentLike(ours, aboutObject(template, object as unknown as GoObject))));
  }

  test('connect: takes over the version that the principal insists on, and tells what it holds', async () => {
    const versions = principal.logins.map(({ version }) => version);
    expect(versions.at(-1)).toBe(recordedVersion);
    expect(principal.logins.at(-1)).toEqual({
      method: 'mtls',
      mode: 'managed',
      version: recordedVersion,
      agentNamespace: namespace,
    });
    const told = () => principal.stream.events('resourceResync');
    await until(() => expect(told().map(typeOf)).toContain('request-synced-resource-list'));
    const template = recordedEvent('app-managed', {
      ...fromAgent,
      target: 'resourceResync',
      type: 'request-synced-resource-list',
    });
    // It holds nothing.
    expect(told().map(meaningOf)).toEqual([{ ...meaningOf(template), payload: { checksum: null } }]);
    await acknowledged();
  });

  test('create, status, spec-update, sync, terminate, delete', async () => {
    const name = 'guestbook';
    const hub = await deployed(name);
    const made = await local(name);
    expect(made?.metadata.annotations).toMatchObject({
      [sourceUid]: hub.metadata.uid,
      'argocd.argoproj.io/principal-uid': principal.uid,
    });
    expect(made?.spec).toEqual({ ...hub.spec, destination: { name: 'in-cluster', namespace: 'guestbook' } });

    const recordedStatus = (fits: (object: GoObject) => boolean) =>
      goPayload<GoObject>(
        recordedEvent('app-managed', { ...fromAgent, target: 'application', type: 'status-update', where: fits }),
      )?.status;
    const before = reports(name).length;
    const reported = await patch(name, {
      status: recordedStatus(({ status }) => status?.operationState === undefined),
    });
    await until(() => expect(onHub(name)?.status).toEqual(reported.status));
    expectReport(reports(name).at(-1) as GoEvent, reported);
    expect(reports(name).slice(before).map(typeOf)).not.toContain('delete');

    principal.change('application', name, ({ spec }) =>
      Object.assign(spec ?? {}, { info: [{ name: 'e2e', value: 'test' }] }),
    );
    await until(async () => expect((await local(name))?.spec.info).toEqual([{ name: 'e2e', value: 'test' }]));

    const operation = goPayload<GoObject>(
      recordedEvent('app-managed', {
        dir: 'principal->agent',
        agent: agentName,
        target: 'application',
        type: 'set-operation',
      }),
    )?.operation;
    principal.change('application', name, (object) => Object.assign(object, { operation }));
    await until(async () => expect((await local(name))?.operation).toEqual(operation));
    await acknowledged();
    const running = await patch(name, {
      status: recordedStatus(({ operation: requested }) => requested !== undefined),
    });
    await until(() => expect(onHub(name)?.status).toEqual(running.status));
    expectReport(reports(name).at(-1) as GoEvent, running);
    expect(onHub(name)?.operation).toEqual(operation);

    principal.change('application', name, ({ status }) =>
      Object.assign(status?.operationState ?? {}, { phase: 'Terminating' }),
    );
    await until(async () =>
      expect((await local(name))?.status?.operationState).toMatchObject({ phase: 'Terminating' }),
    );
    // Argo CD ends the operation: it is gone here, and then on the hub.
    const ended = await patch(name, { operation: null, status: { operationState: { phase: 'Failed' } } });
    await until(() => expect(onHub(name)?.status).toEqual(ended.status));
    await until(() => expect(onHub(name)?.operation).toBeUndefined());
    expectReport(reports(name).at(-1) as GoEvent, ended);
    await acknowledged();

    principal.delete('application', name);
    await until(async () => expect(await local(name)).toBeUndefined());
    await acknowledged();
    expect(principal.stream.refused).toEqual([]);
  });

  test('refresh: the wish arrives, and the principal hears when Argo CD has taken it up', async () => {
    const wish = 'argocd.argoproj.io/refresh';
    await deployed('refreshed');
    principal.change('application', 'refreshed', ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [wish]: 'hard' };
    });
    await until(async () => expect((await local('refreshed'))?.metadata.annotations?.[wish]).toBe('hard'));
    await patch('refreshed', { metadata: { annotations: { [wish]: null } }, status: { sync: { status: 'Synced' } } });
    await until(() => expect(onHub('refreshed')?.status).toEqual({ sync: { status: 'Synced' } }));
    await until(() => expect(onHub('refreshed')?.metadata.annotations?.[wish]).toBeUndefined());
    await acknowledged();
    expect((await local('refreshed'))?.metadata.annotations?.[wish]).toBeUndefined();
  });

  test('a deletion with finalizers is carried out here first, then the principal is told', async () => {
    const finalizers = ['resources-finalizer.argocd.argoproj.io'];
    const made = asMade(creation(), 'finalised');
    await deployed('finalised', { ...made, metadata: { ...made.metadata, finalizers } });
    principal.delete('application', 'finalised');
    await until(async () => expect((await local('finalised'))?.metadata.deletionTimestamp).toBeDefined());
    const deleting = await local('finalised');
    expect(deleting?.metadata.finalizers).toEqual(expect.arrayContaining(finalizers));
    await patch('finalised', { metadata: { finalizers: null } });
    await until(() => expect(onHub('finalised')).toBeUndefined());
    const recorded = recordedEvent('delete', { ...fromAgent, target: 'application', type: 'delete' });
    const ours = reports('finalised').filter((event) => typeOf(event) === 'delete');
    expect(deletionOf(ours[0] as GoEvent)).toEqual(
      deletionOf(sentLike(ours[0] as GoEvent, aboutObject(recorded, deleting as unknown as GoObject))),
    );
    await acknowledged();
  });

  test('local changes and deletions are reverted without a word to the principal', async () => {
    const hub = await deployed('guarded');
    const before = reports('guarded').length;
    await patch('guarded', { spec: { project: 'other' } });
    await until(async () => expect((await local('guarded'))?.spec.project).toBe(hub.spec?.project));
    await cluster.client.delete(pairApplications, { name: 'guarded', namespace });
    await until(async () => expect((await local('guarded'))?.metadata.annotations?.[sourceUid]).toBe(hub.metadata.uid));
    await acknowledged();
    expect(reports('guarded').slice(before).map(typeOf)).not.toContain('delete');
    expect(onHub('guarded')).toBeDefined();
  });

  test('AppProjects, repositories and GPG keys arrive, change and go', async () => {
    const told = (recording: string, target: string, type: string) =>
      goPayload<GoObject>(
        recordedEvent(recording, { dir: 'principal->agent', agent: agentName, target, type }),
      ) as GoObject;
    for (const [target, recording] of copies) {
      const name = target === 'gpgkey' ? 'argocd-gpg-keys-cm' : `sample-${target}`;
      const { metadata, status: _, ...content } = told(recording, target, 'create');
      const hub = principal.create(target, { ...content, metadata: { name, labels: metadata.labels ?? {} } });
      await until(async () =>
        expect(await copyOf(target, name)).toMatchObject({ from: hub.metadata.uid, content: contentOf(hub) }),
      );
      const { data, spec } = told(recording, target, 'spec-update');
      principal.change(target, name, (object) => Object.assign(object, data ? { data } : { spec }));
      await until(async () =>
        expect(await copyOf(target, name)).toMatchObject({ content: contentOf(principal.object(target, name)) }),
      );
      await acknowledged();
    }
    expect(principal.stream.refused).toEqual([]);
  });

  test('the principal restarts: the agent tells what it holds, and both agree afterwards', async () => {
    const stays = await deployed('stays');
    await deployed('changes');
    await deployed('goes');
    await principal.stop();
    principal.hub.application.delete('goes');
    Object.assign(principal.object('application', 'changes').spec ?? {}, { info: [{ name: 'a', value: 'b' }] });
    const written = (await local('stays'))?.metadata.resourceVersion;
    await principal.restart();
    await until(() => expect(principal.isConnected).toBe(true));
    await until(async () => expect(await local('goes')).toBeUndefined());
    await until(async () => expect((await local('changes'))?.spec.info).toEqual([{ name: 'a', value: 'b' }]));
    await acknowledged();
    const told = principal.stream.events('resourceResync').filter((event) => typeOf(event) === 'request-update');
    const template = recordedEvent('resync', {
      ...fromAgent,
      target: 'resourceResync',
      type: 'request-update',
      where: ({ kind }) => kind === 'Application',
    });
    const [ours] = told.filter((event) => goPayload(event)?.name === 'stays');
    const payload = {
      name: 'stays',
      namespace,
      uid: stays.metadata.uid,
      kind: 'Application',
      checksum: goChecksum(stays.spec),
    };
    expect({ ...meaningOf(ours as GoEvent), payload: { ...goPayload(ours as GoEvent), ...free } }).toEqual({
      ...meaningOf(template),
      payload: { ...payload, ...free },
    });
    // Nothing had changed, so nothing is written.
    expect((await local('stays'))?.metadata.resourceVersion).toBe(written);
    for (const [target] of copies) {
      const named = told.filter((event) => goPayload(event)?.kind === kindNames[target]);
      expect(named.length, target).toBeGreaterThan(0);
    }
  });

  test('the agent restarts: it tells what it holds, and asks for what it does not hold', async () => {
    await deployed('kept');
    await acknowledged();
    await agent.stop('SIGKILL');
    principal.disconnect();
    principal.delete('application', 'kept');
    // What was queued for an agent that is away may be lost in the original; resync has to do.
    principal.forgetQueue();
    const fresh = { ...asMade(creation(), 'fresh') };
    principal.create('application', fresh);
    principal.forgetQueue();
    agent.start();
    await until(() => expect(principal.isConnected).toBe(true));
    await until(async () => expect(await local('kept')).toBeUndefined());
    await until(async () => expect(await local('fresh')).toBeDefined());
    await acknowledged();
    const told = principal.stream.events('resourceResync');
    const list = told.filter((event) => typeOf(event) === 'request-synced-resource-list');
    const template = recordedEvent('app-managed', {
      ...fromAgent,
      target: 'resourceResync',
      type: 'request-synced-resource-list',
    });
    expect(list.map((event) => ({ ...meaningOf(event), payload: {} }))).toEqual([
      { ...meaningOf(template), payload: {} },
    ]);
    const updates = told.filter((event) => typeOf(event) === 'request-update');
    const missing = updates.map((event) => goPayload(event)).filter((payload) => payload?.name === 'fresh');
    // The namespace is free: a principal that maps agents to namespaces looks in the agent's, whatever is said here.
    const held = { name: 'fresh', namespace: expect.any(String), uid: '', kind: 'Application', checksum: null };
    expect(missing[0]).toMatchObject(held);
  });

  /** The event as if it had been sent at the time when ours was. */
  function sentLike(ours: GoEvent, event: GoEvent): GoEvent {
    return changed(event, { strings: { sentat: extensionOf(ours, 'sentat') } });
  }

  async function copyOf(target: (typeof copies)[number][0], name: string) {
    const type = { appproject: pairAppProjects, repository: secrets, gpgkey: configMaps }[target];
    const object = (await cluster.client.get(type as typeof pairAppProjects, { name, namespace })) as
      | GoObject
      | undefined;
    return object && { from: object.metadata.annotations?.[sourceUid], content: contentOf(object) };
  }
});

const copies = [
  ['appproject', 'appproject'],
  ['repository', 'repository'],
  ['gpgkey', 'gpgkey'],
] as const;
const kindNames = { appproject: 'AppProject', repository: 'Repository', gpgkey: 'GPGKey' } as const;
/** Extensions of ours to the payloads of resync messages, which Go ignores. */
const free = { digest: undefined, principalUid: undefined };

function contentOf({ spec, data }: GoObject) {
  return spec === undefined ? data : withoutZeros(spec);
}
