import { describe, expect, test } from 'vitest';
import { eventLines, type RecordedLine } from '../../../e2e/recordings/index.ts';
import { applyMergePatch, isEqual, mergePatchBetween } from '../../base/index.ts';
import type { ObjectRef, Store, StoreChange } from '../../sync/index.ts';
import { type Application, type ApplicationMessage, annotations, applicationSchema, type Message } from '../index.ts';
import { Lab, type LabAgent } from '../testing/lab.ts';

// What a Go principal and a Go agent sent to each other about managed Applications, each side's part played by ours: it must
// come to what the Go side came to.

const agentName = 'agent-managed';
const agentNamespace = 'argocd-managed';

interface Recorded {
  readonly toAgent: boolean;
  readonly message: Message;
}

function isState(message: Message): message is ApplicationMessage {
  return message.target === 'application' && (message.type === 'create' || message.type === 'spec-update');
}

interface DecodedEvent {
  readonly type?: string;
  readonly attributes?: Readonly<Record<string, string | { readonly ce_uri: string }>>;
  readonly dataJson?: unknown;
}

function recorded(name: string): Recorded[] {
  return eventLines(name)
    .filter(({ agent }) => agent === agentName)
    .flatMap(({ dir, decoded }) => {
      const message = messageOf(decoded);
      return message === undefined ? [] : [{ toAgent: dir === 'principal->agent', message }];
    });
}

function messageOf(event: RecordedLine['decoded']): Message | undefined {
  const { type = '', attributes = {}, dataJson } = (event ?? {}) as DecodedEvent;
  const target = (attributes.dataschema as { ce_uri: string } | undefined)?.ce_uri;
  const { resourceid: resourceId, eventid: eventId, principaluid: principalUid } = attributes;
  const kind = type.slice(type.lastIndexOf('.') + 1);
  const common = { target, type: kind, resourceId, eventId, ...(principalUid === undefined ? {} : { principalUid }) };
  if (target === 'application') {
    return (
      kind === 'error' ? { ...common, error: dataJson } : { ...common, object: applicationSchema.parse(dataJson) }
    ) as Message;
  }
  const isOurs = (dataJson as { kind?: string } | undefined)?.kind === 'Application';
  return target === 'resourceResync' && isOurs ? ({ ...common, payload: dataJson } as Message) : undefined;
}

const refOf = ({ metadata: { namespace = '', name } }: Application): ObjectRef => ({ namespace, name });
const sourceOf = (copy: Application | undefined) => copy?.metadata.annotations?.[annotations.sourceUid];
const byDestination = {
  mapping: () => ({ toLocal: (at: string) => at, toHub: (at: string) => at }),
  isAllowed: () => true,
};

/** Users and Argo CD do on our agent's cluster what they must have done on the other's for it to report this. */
async function imitate(lab: Lab, agent: LabAgent, report: Application, before: Application | undefined): Promise<void> {
  const ref = refOf(report);
  const { objects } = agent.cluster;
  if (before !== undefined && before.metadata.uid !== report.metadata.uid && sourceOf(before) === sourceOf(report)) {
    objects.delete(ref, { propagation: 'Background' });
    objects.patch(ref, { metadata: { finalizers: null } });
    await lab.run();
  }
  if (objects.get(ref) === undefined) {
    return;
  }
  const left = report.metadata.annotations?.[annotations.refresh] ?? null;
  const status = mergePatchBetween(objects.get(ref)?.status, report.status ?? {}) ?? {};
  objects.patch(ref, { status, metadata: { annotations: { [annotations.refresh]: left } } });
  objects.patch(ref, { operation: null });
  if (report.operation !== undefined) {
    objects.patch(ref, { operation: report.operation });
  }
  await lab.run();
}

describe('recorded between Go peers', () => {
  test.each([
    ['app-managed', 4],
    ['refresh', 3],
    ['terminate', 5],
    ['delete', 6],
    ['recreate', 2],
    ['dest-mapping', 6],
    ['resync', 4],
  ])('%s: our agent makes of it what the Go agent made of it', async (file, leastReports) => {
    const lab = new Lab();
    const agent = lab.agent({
      namespace: agentNamespace,
      onRecreate: file === 'recreate' ? 'resync' : 'ignore',
      ...(file === 'dest-mapping' ? byDestination : {}),
    });
    agent.connect('argocd');
    const wanted = new Map<string, Application>();
    const last = new Map<string, Application>();
    let reports = 0;
    for (const { toAgent, message } of recorded(file)) {
      const place = message.target === 'application' && 'object' in message ? message.object.metadata.name : '';
      if (toAgent) {
        agent.sync.receive(message);
        // A Go principal says it again after 5 to 10 s, or when the stream is new, perhaps while it is still worked on.
        agent.sync.receive(message);
        await lab.run();
        expect(agent.acknowledged).toContain(`${message.type} ${message.resourceId} ${message.eventId}`);
        if (isState(message)) {
          wanted.set(place, message.object);
        }
        if (message.type === 'delete') {
          wanted.delete(place);
        }
      } else if (message.target === 'application' && message.type === 'status-update') {
        const report = message.object;
        await imitate(lab, agent, report, last.get(place));
        last.set(place, report);
        const copy = agent.cluster.objects.get(refOf(report));
        const hub = wanted.get(place);
        if (copy === undefined || hub === undefined || sourceOf(copy) !== sourceOf(report)) {
          continue;
        }
        reports++;
        const { destination, ...spec } = copy.spec;
        expect(spec).toEqual({ ...hub.spec, destination: undefined });
        expect(destination, 'the destination as the Go agent wrote it').toEqual(report.spec.destination);
        const { [annotations.lastApplied]: _, ...marks } = report.metadata.annotations ?? {};
        expect(copy.metadata.annotations).toEqual(marks);
        expect(copy.metadata.labels ?? {}).toEqual(report.metadata.labels ?? {});
        expect(copy.metadata.finalizers ?? []).toEqual(expect.arrayContaining(hub.metadata.finalizers ?? []));
        expect(copy.metadata.ownerReferences).toBeUndefined();
        const sent = agent.sent.findLast((one) => one.type === 'status-update');
        const ours = sent !== undefined && 'object' in sent ? (sent.object as Application) : undefined;
        expect(ours?.metadata).toMatchObject({ name: report.metadata.name, namespace: report.metadata.namespace });
        expect({ status: ours?.status, operation: ours?.operation }).toEqual({
          status: report.status,
          operation: report.operation,
        });
      } else if (message.target === 'application' && message.type === 'delete') {
        const { objects } = agent.cluster;
        if (objects.get(refOf(message.object)) !== undefined) {
          objects.patch(refOf(message.object), { metadata: { finalizers: null } });
        }
        await lab.run();
        const sent = agent.sent.findLast((one) => one.type === 'delete');
        if (file === 'delete') {
          expect(sent).toMatchObject({ object: { metadata: { name: message.object.metadata.name } } });
        }
      }
    }
    expect(reports).toBeGreaterThanOrEqual(leastReports);
  });

  test('errors: our agent refuses what the Go agent refused, in its words to the principal', async () => {
    const lines = recorded('errors');
    const error = lines.find(({ message }) => message.type === 'error')?.message;
    const create = lines.find(({ message }) => message.type === 'create')?.message;
    if (error?.type !== 'error' || create?.type !== 'create') {
      throw new Error('the recording lacks what it is about');
    }
    const lab = new Lab();
    const agent = lab.agent({ namespace: agentNamespace, adoptionPolicy: 'never' });
    const { name } = create.object.metadata;
    agent.cluster.objects.create({ metadata: { namespace: agentNamespace, name }, spec: {} });
    agent.connect('argocd');
    agent.sync.receive(create);
    await lab.run(5_000);
    const sent = agent.sent.find(({ type }) => type === 'error');
    expect(sent?.type === 'error' && sent.error).toMatchObject({ resourceName: error.error.resourceName });
    expect(agent.acknowledged).toHaveLength(1);
  });

  test.each([
    ['app-managed', 6],
    ['refresh', 3],
    ['terminate', 5],
    ['delete', 6],
    ['recreate', 3],
    ['dest-mapping', 6],
    ['resync', 4],
  ])('%s: our principal makes of it what the Go principal made of it', async (file, leastReports) => {
    const lab = new Lab();
    const hub = new RecordedHub();
    const principal = lab.principal({
      applications: hub,
      agentOf: () => agentName,
      namespaceOf: (agent, local) => (file === 'dest-mapping' ? local : agent),
    });
    principal.connect(agentName);
    await lab.run(5_000);
    let reports = 0;
    for (const { toAgent, message } of recorded(file)) {
      if (toAgent && message.target === 'application' && 'object' in message) {
        const before = hub.get(refOf(message.object));
        const count = principal.sent.length;
        hub.imitate(message.type, message.object);
        await lab.run();
        const sent = principal.sent.slice(count).map(({ type }) => type as string);
        // A Go principal also sends back, as if a user had asked, what the agent itself had begun.
        const isEcho = message.type === 'set-operation' && isEqual(before?.operation, message.object.operation);
        if ((message.type === 'set-operation' && !isEcho) || message.type === 'terminate-operation') {
          expect(sent).toContain(message.type);
        }
        if (isEcho) {
          expect(sent).toEqual([]);
        }
        if (message.type === 'create' && before === undefined) {
          expect(sent).toContain('create');
        }
        if (message.type === 'delete' && before !== undefined) {
          expect(sent).toContain('delete');
        }
      } else if (!toAgent && message.target === 'resourceResync' && message.type === 'request-update') {
        const { namespace = '', name, uid } = message.payload;
        const ref = { namespace: file === 'dest-mapping' ? namespace : agentName, name };
        const count = principal.sent.length;
        principal.sync.receive(agentName, message);
        await lab.run();
        const sent = principal.sent.slice(count).map(({ type }) => type as string);
        if (hub.get(ref) === undefined && uid !== '') {
          expect(sent, 'an orphan goes').toEqual(['delete']);
        }
      } else if (!toAgent && message.target === 'application') {
        principal.sync.receive(agentName, message);
        await lab.run();
        expect(principal.acknowledged).toContain(`${message.type} ${message.resourceId} ${message.eventId}`);
        if (message.type !== 'status-update') {
          continue;
        }
        const { object } = message;
        const ref = {
          namespace: file === 'dest-mapping' ? (object.metadata.namespace ?? '') : agentName,
          name: object.metadata.name,
        };
        const now = hub.get(ref);
        if (now === undefined || now.metadata.uid !== sourceOf(object)) {
          continue;
        }
        reports++;
        expect(now.status).toEqual(object.status);
        expect(now.operation).toEqual(object.operation);
        expect(now.metadata.annotations?.[annotations.refresh]).toBe(
          object.metadata.annotations?.[annotations.refresh],
        );
      }
    }
    expect(reports).toBeGreaterThanOrEqual(leastReports);
    expect(lab.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

/** The hub of a recording: users do on it what they must have done for the Go principal to say what it sent. */
class RecordedHub implements Store<Application> {
  readonly #objects = new Map<string, Application>();
  #listener: (change: StoreChange<Application>) => void = () => undefined;
  #version = 0;

  get({ namespace, name }: ObjectRef): Application | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  imitate(type: string, object: Application): void {
    const before = this.get(refOf(object));
    if (type === 'delete') {
      if (before?.metadata.uid === object.metadata.uid) {
        this.#put(before, undefined);
      }
      return;
    }
    const isSame = before?.metadata.uid === object.metadata.uid;
    if (before !== undefined && !isSame) {
      this.#put(before, undefined);
    }
    // Status and operation are the agent's to say, except where a user asks for something.
    const { status: _, operation, ...others } = object;
    const asked = type === 'set-operation' || type === 'create' ? operation : isSame ? before?.operation : undefined;
    const status = type === 'terminate-operation' ? object.status : isSame ? before?.status : undefined;
    this.#put(isSame ? before : undefined, {
      ...others,
      ...(status === undefined ? {} : { status }),
      ...(asked === undefined ? {} : { operation: asked }),
    });
  }

  subscribe(listener: (change: StoreChange<Application>) => void): () => void {
    this.#listener = listener;
    return () => undefined;
  }

  async read(ref: ObjectRef): Promise<Application | undefined> {
    return this.get(ref);
  }

  async create(): Promise<Application> {
    throw new Error('a principal makes nothing in managed mode');
  }

  async patch(ref: ObjectRef, patch: Readonly<Record<string, unknown>>): Promise<Application> {
    const before = this.get(ref);
    if (before === undefined) {
      throw Object.assign(new Error('not found'), { status: 404 });
    }
    const { resourceVersion, uid } = (patch.metadata ?? {}) as Partial<Application['metadata']>;
    if (
      (resourceVersion ?? before.metadata.resourceVersion) !== before.metadata.resourceVersion ||
      (uid ?? before.metadata.uid) !== before.metadata.uid
    ) {
      throw Object.assign(new Error('conflict'), { status: 409 });
    }
    const now = applyMergePatch(before, patch) as Application;
    const isGone = now.metadata.deletionTimestamp !== undefined && (now.metadata.finalizers ?? []).length === 0;
    this.#put(before, isGone ? undefined : now);
    return this.get(ref) ?? now;
  }

  async delete(): Promise<void> {
    throw new Error('a principal deletes nothing in managed mode');
  }

  #put(old: Application | undefined, object: Application | undefined): void {
    const one = object ?? old;
    if (one === undefined) {
      return;
    }
    const { namespace, name } = refOf(one);
    const metadata = { ...one.metadata, resourceVersion: String(++this.#version) };
    if (object === undefined) {
      this.#objects.delete(`${namespace}/${name}`);
      this.#listener({ old: { ...one, metadata }, now: undefined });
    } else {
      this.#objects.set(`${namespace}/${name}`, { ...object, metadata });
      this.#listener({ old, now: { ...object, metadata } });
    }
  }
}
