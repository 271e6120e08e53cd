import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Clock, processRuntime } from '../../sync/index.ts';
import {
  AgentSync,
  type Copy,
  type CopySync,
  HubSync,
  type Listed,
  type Message,
  type ObjectMessage,
  type RequestUpdate,
  type ResyncKind,
  type ResyncMessage,
  resourceListChecksum,
  type SourceSync,
} from '../index.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const nothing = () => undefined;
const quiet = { pending: 0, inFlight: 0, queued: 0, retrying: 0 };

function logOf(warnings: object[]) {
  return { debug: nothing, info: nothing, warn: (fields: object) => void warnings.push(fields), error: nothing };
}

/** A kind that takes part and notes what it hears. */
function sourcePart(kind: ResyncKind, heard: string[], listed: Listed[] = []): SourceSync {
  return {
    kind,
    connected: () => void heard.push(`${kind} connected`),
    disconnected: () => void heard.push(`${kind} disconnected`),
    open: () => void heard.push(`${kind} open`),
    writable: nothing,
    acknowledged: ({ resourceId }) => resourceId.startsWith(kind),
    receive: (message: ObjectMessage) => message.type === 'status-update' && heard.push(`${kind} report`) > 0,
    holds: ({ name, uid }) => {
      heard.push(`${kind} holds ${name} ${uid}`);
      return listed.find((one) => one.name === name)?.id;
    },
    lacks: (id) => void heard.push(`${kind} lacks ${id}`),
    list: () => listed,
    stats: () => quiet,
    close: () => void heard.push(`${kind} closed`),
  };
}

function mirrorPart(kind: ResyncKind, heard: string[], copies: Copy[] = []): CopySync {
  const holding = ({ name, namespace }: { name: string; namespace: string }): RequestUpdate => ({
    kind,
    name,
    namespace,
    uid: copies.find((copy) => copy.ref.name === name)?.uid ?? '',
    checksum: null,
    digest: '',
  });
  return {
    kind,
    connected: nothing,
    disconnected: nothing,
    writable: nothing,
    acknowledged: () => false,
    receive: (message) => message.type === 'create' && heard.push(`${kind} create`) > 0,
    copies: () => copies,
    holding,
    localRef: ({ name }) => ({ namespace: 'here', name }),
    sourceRestarted: () => void heard.push(`${kind} source restarted`),
    stats: () => quiet,
    close: nothing,
  };
}

/** A principal with one managed agent, which acknowledges by itself unless it is told not to. */
function startPrincipal(
  options: { projects?: Listed[]; applications?: Listed[]; acknowledges?: boolean; clock?: Clock } = {},
) {
  const heard: string[] = [];
  const sent: Message[] = [];
  const acknowledged: string[] = [];
  const warnings: object[] = [];
  const kindOf = (kind: ResyncKind, listed: Listed[] = []) => ({
    start: nothing,
    syncFor: () => sourcePart(kind, heard, listed),
    forgetAgent: () => void heard.push(`${kind} forgotten`),
  });
  const mirrors = { start: nothing, syncFor: () => mirrorPart('Application', heard), forgetAgent: nothing };
  const principal = new HubSync({
    managed: [kindOf('AppProject', options.projects), kindOf('Application', options.applications)],
    autonomous: [mirrors],
    runtime: {
      ...processRuntime(logOf(warnings)),
      random: () => 0,
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    },
  });
  principal.start(new AbortController().signal);
  const connection = {
    send: (message: Message) => {
      sent.push(message);
      if (options.acknowledges !== false) {
        queueMicrotask(() => principal.acknowledged('a', message));
      }
      return true;
    },
    acknowledge: ({ eventId }: Message) => void acknowledged.push(eventId),
  };
  return { principal, connection, heard, sent, acknowledged, warnings };
}

let events = 0;
const resync = (message: Omit<ResyncMessage, 'resourceId' | 'eventId' | 'target'>, eventId = `e${++events}`) =>
  ({ target: 'resourceResync', resourceId: 'r', eventId, ...message }) as ResyncMessage;
const update = (kind: ResyncKind, name: string, uid: string) =>
  resync({ type: 'request-update', payload: { kind, name, uid, checksum: null, digest: '' } });
const list = (payload: { checksum: string | null; complete?: boolean }) =>
  resync({ type: 'request-synced-resource-list', payload });
const listed = (name: string): Listed => ({ id: `id-${name}`, name, namespace: 'hub', uid: `uid-${name}` });

test('an agent that is new is asked once what it holds, and told nothing before it has answered, projects first', async () => {
  const { principal, connection, heard, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  expect(heard).toEqual(['AppProject connected', 'Application connected']);
  principal.receive('a', update('Application', 'x', 'u'));
  await vi.advanceTimersByTimeAsync(10);
  expect(sent.map(({ type }) => type)).toEqual(['request-resource-resync']);
  expect(heard.slice(2)).toEqual(['Application holds x u', 'AppProject open', 'Application open']);
});

test('one that does not answer is told everything after 2 s of silence', async () => {
  const { principal, connection, heard } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(1_500);
  principal.receive('a', update('Application', 'x', 'u'));
  await vi.advanceTimersByTimeAsync(1_500);
  expect(heard).not.toContain('Application open');
  await vi.advanceTimersByTimeAsync(600);
  expect(heard).toContain('Application open');
});

test('a principal that is too busy to have read the answer waits for it again, but not for ever', () => {
  let now = 0;
  const timers = new Set<() => void>();
  const clock = {
    now: () => now,
    after: (_: number, run: () => void) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
  };
  const { principal, connection, heard } = startPrincipal({ acknowledges: false, clock });
  principal.connected('a', 'managed', connection);
  const fires = () => {
    now += 3_000;
    for (const run of [...timers]) {
      if (timers.delete(run)) {
        run();
      }
    }
    return heard.includes('Application open');
  };
  expect([fires(), fires(), fires(), fires(), fires(), fires()]).toEqual([false, false, false, false, false, true]);
});

test('one that is cut off before it answered is asked once on the next connection', async () => {
  const { principal, connection, sent, heard } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  principal.disconnected('a', connection);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(heard).not.toContain('Application open');
  principal.connected('a', 'managed', connection);
  principal.acknowledged('a', sent[1] as Message);
  expect(sent.map(({ type }) => type)).toEqual(['request-resource-resync', 'request-resource-resync']);
});

test('one that comes back is not asked again; a newer connection takes the place of the older', async () => {
  const { principal, connection, heard, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(3_000);
  const second = { ...connection };
  heard.length = 0;
  principal.connected('a', 'managed', second);
  principal.disconnected('a', connection);
  expect(heard.filter((line) => line.startsWith('Application'))).toEqual([
    'Application disconnected',
    'Application connected',
  ]);
  principal.disconnected('a', second);
  expect(heard.at(-1)).toBe('Application disconnected');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sent).toHaveLength(1);
});

test('a repeated message is acknowledged and not listened to again, a lost one is on the next connection', () => {
  const { principal, connection, heard, acknowledged } = startPrincipal();
  principal.connected('a', 'managed', connection);
  const message = update('AppProject', 'x', 'u');
  principal.receive('a', message);
  principal.receive('a', message);
  const holds = () => heard.filter((line) => line === 'AppProject holds x u').length;
  expect(holds()).toBe(1);
  expect(acknowledged).toEqual([message.eventId, message.eventId]);
  principal.connected('a', 'managed', connection);
  principal.receive('a', message);
  expect(holds()).toBe(2);
});

test('a list that is the same over all kinds costs nothing', () => {
  const { principal, connection, heard, sent } = startPrincipal({
    projects: [listed('p')],
    applications: [listed('x')],
  });
  principal.connected('a', 'managed', connection);
  const checksum = resourceListChecksum([
    { kind: 'Application', name: 'x', uid: 'uid-x' },
    { kind: 'AppProject', name: 'p', uid: 'uid-p' },
  ]);
  heard.length = sent.length = 0;
  principal.receive('a', list({ checksum, complete: true }));
  principal.receive('a', list({ checksum }));
  expect([...heard, ...sent]).toEqual([]);
});

test('an agent that told everything lacks the rest', () => {
  const { principal, connection, heard } = startPrincipal({
    projects: [listed('p'), listed('q')],
    applications: [listed('p')],
  });
  principal.connected('a', 'managed', connection);
  principal.receive('a', update('AppProject', 'p', 'uid-p'));
  heard.length = 0;
  principal.receive('a', list({ checksum: 'other', complete: true }));
  expect(heard).toEqual(['AppProject lacks id-q', 'Application lacks id-p']);
});

test('an agent that may yet tell more is asked about the rest, as by the original', async () => {
  const { principal, connection, heard, sent } = startPrincipal({
    projects: [listed('p')],
    applications: [listed('x')],
  });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(3_000);
  principal.receive('a', update('AppProject', 'p', 'uid-p'));
  heard.length = sent.length = 0;
  principal.receive('a', list({ checksum: 'other' }));
  expect(heard).toEqual([]);
  expect(sent).toMatchObject([
    { type: 'response-synced-resource', payload: { kind: 'Application', name: 'x', namespace: 'hub', uid: 'uid-x' } },
  ]);
});

test('an agent that acknowledges before it has told all is given time; one that says that it was all is not', async () => {
  const { principal, connection, heard } = startPrincipal();
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(200);
  principal.receive(
    'a',
    resync({ type: 'request-update', payload: { kind: 'Application', name: 'x', uid: 'u', checksum: 's' } }),
  );
  await vi.advanceTimersByTimeAsync(200);
  expect(heard).not.toContain('Application open');
  principal.receive('a', list({ checksum: null, complete: true }));
  expect(heard).toContain('Application open');
});

test('an empty hub answers an empty agent nothing, whether it says null or nothing', () => {
  const { principal, connection, heard, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  heard.length = sent.length = 0;
  principal.receive('a', list({ checksum: null }));
  principal.receive('a', list({ checksum: '' }));
  expect([...heard, ...sent]).toEqual([]);
});

test('what an agent may not send is acknowledged, said, and not said without end', async () => {
  const { principal, connection, acknowledged, warnings } = startPrincipal();
  principal.connected('a', 'managed', connection);
  const object = { metadata: { name: 'x' }, spec: {} };
  for (let i = 0; i < 100; i++) {
    principal.receive('a', { target: 'appproject', type: 'create', resourceId: 'r', eventId: `x${i}`, object });
  }
  principal.receive('a', resync({ type: 'request-resource-resync', payload: {} }));
  expect(acknowledged).toHaveLength(101);
  expect(warnings).toHaveLength(20);
  expect(warnings[0]).toMatchObject({ agent: 'a', target: 'appproject', type: 'create' });
  await vi.advanceTimersByTimeAsync(60_000);
  principal.receive('a', { target: 'repository', type: 'create', resourceId: 'r', eventId: 'y', object });
  expect(warnings).toHaveLength(21);
  expect(warnings.at(-1)).toMatchObject({ target: 'repository', suppressedWarnings: 81 });
});

test('acknowledgements find their part', () => {
  const { principal, connection, sent } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  expect(sent).toHaveLength(1);
  principal.acknowledged('a', { resourceId: 'Application-x', eventId: 'e' });
  expect(principal.stats('a').pending).toBe(1);
  principal.acknowledged('a', sent[0] as Message);
  expect(principal.stats('a').pending).toBe(0);
});

test('an agent that comes in another mode is another agent', () => {
  const { principal, connection, heard } = startPrincipal();
  principal.connected('a', 'managed', connection);
  principal.connected('a', 'autonomous', connection);
  expect(heard).toContain('Application closed');
  expect(heard).toContain('Application forgotten');
  principal.receive('a', resync({ type: 'request-resource-resync', payload: {} }));
  expect(heard.at(-1)).toBe('Application source restarted');
});

test('what is said to a principal that does not know the agent is nothing', () => {
  const { principal, heard } = startPrincipal();
  principal.receive('nobody', update('Application', 'x', 'u'));
  principal.writable('nobody');
  principal.acknowledged('nobody', { resourceId: 'r', eventId: 'e' });
  expect(heard).toEqual([]);
  expect(principal.stats('nobody')).toEqual(quiet);
});

/** A managed agent with a project and two Applications, and a principal that acknowledges when it is told to. */
function startAgent() {
  const heard: string[] = [];
  const waiting: Message[] = [];
  const sent: Message[] = [];
  const acknowledged: string[] = [];
  const copy = (name: string): Copy => ({ ref: { namespace: 'here', name }, name, uid: `uid-${name}` });
  const kindOf = (kind: ResyncKind, copies: Copy[]) => ({ ...mirrorPart(kind, heard, copies), start: nothing });
  const agent = new AgentSync({
    mode: 'managed',
    kinds: [kindOf('AppProject', [copy('p')]), kindOf('Application', [copy('x'), copy('y')])],
    runtime: { ...processRuntime(logOf([])), random: () => 0 },
  });
  agent.start(new AbortController().signal);
  const connection = {
    send: (message: Message) => sent.push(message) > 0 && waiting.push(message) > 0,
    acknowledge: ({ eventId }: Message) => void acknowledged.push(eventId),
  };
  const answer = () => {
    for (const message of waiting.splice(0)) {
      agent.acknowledged(message);
    }
  };
  const connect = () => agent.connected(connection, { agent: 'a', principalNamespace: '' });
  return { agent, connection, connect, answer, heard, sent, acknowledged };
}

const told = (sent: Message[]) =>
  sent.map((message) =>
    message.type === 'request-update' ? `${message.payload.kind} ${message.payload.name}` : message.type,
  );

test('an agent that starts tells what it holds, and when that is heard, that it was all', () => {
  const { connect, answer, sent } = startAgent();
  connect();
  expect(told(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
  answer();
  expect(sent.at(-1)).toMatchObject({
    type: 'request-synced-resource-list',
    payload: {
      checksum: resourceListChecksum([
        { kind: 'AppProject', name: 'p', uid: 'uid-p' },
        { kind: 'Application', name: 'x', uid: 'uid-x' },
        { kind: 'Application', name: 'y', uid: 'uid-y' },
      ]),
      complete: true,
    },
  });
  answer();
  sent.length = 0;
  connect();
  expect(sent).toEqual([]);
});

test('an agent that is cut off before all was heard tells everything again on the next connection', () => {
  const { agent, connect, connection, answer, sent } = startAgent();
  connect();
  answer();
  agent.disconnected(connection);
  sent.length = 0;
  connect();
  expect(told(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
  answer();
  expect(told(sent).at(-1)).toBe('request-synced-resource-list');
});

test('a principal that asks is answered by every kind, and its question is acknowledged once, when it has heard all', () => {
  const { agent, connect, answer, sent, heard, acknowledged } = startAgent();
  connect();
  answer();
  answer();
  connect();
  sent.length = 0;
  const question = resync({ type: 'request-resource-resync', payload: {} });
  agent.receive(question);
  agent.receive(question);
  expect(told(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
  expect(heard).toEqual(['AppProject source restarted', 'Application source restarted']);
  expect(acknowledged).toEqual([]);
  answer();
  expect(acknowledged).toEqual([question.eventId]);
  agent.receive(question);
  expect(acknowledged).toHaveLength(2);
  expect(heard).toHaveLength(2);
});

test('asked about one, an agent says what it holds of it, or that it has none', () => {
  const { agent, connect, answer, sent, acknowledged } = startAgent();
  connect();
  answer();
  answer();
  sent.length = 0;
  for (const name of ['x', 'missing']) {
    agent.receive(resync({ type: 'response-synced-resource', payload: { kind: 'Application', name, uid: 'u' } }));
  }
  expect(sent).toMatchObject([
    { payload: { kind: 'Application', name: 'x', uid: 'uid-x' } },
    { payload: { kind: 'Application', name: 'missing', uid: '', checksum: null } },
  ]);
  expect(acknowledged).toHaveLength(2);
});
