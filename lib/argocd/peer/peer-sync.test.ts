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
function sourceSync(kind: ResyncKind, calls: string[], listed: Listed[] = []): SourceSync {
  return {
    kind,
    connected: () => void calls.push(`${kind} connected`),
    disconnected: () => void calls.push(`${kind} disconnected`),
    open: () => void calls.push(`${kind} open`),
    writable: nothing,
    acknowledged: ({ resourceId }) => resourceId.startsWith(kind),
    receive: (message: ObjectMessage) => message.type === 'status-update' && calls.push(`${kind} report`) > 0,
    peerReported: ({ name, uid }) => {
      calls.push(`${kind} holds ${name} ${uid}`);
      return listed.find((one) => one.name === name)?.id;
    },
    peerLacks: (id) => void calls.push(`${kind} lacks ${id}`),
    list: () => listed,
    stats: () => quiet,
    close: () => void calls.push(`${kind} closed`),
  };
}

function copySync(kind: ResyncKind, calls: string[], copies: Copy[] = []): CopySync {
  const reportOf = ({ name, namespace }: { name: string; namespace: string }): RequestUpdate => ({
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
    receive: (message) => message.type === 'create' && calls.push(`${kind} create`) > 0,
    copies: () => copies,
    reportOf,
    localRef: ({ name }) => ({ namespace: 'here', name }),
    sourceRestarted: () => void calls.push(`${kind} source restarted`),
    stats: () => quiet,
    close: nothing,
  };
}

/** A principal with one managed agent, which acknowledges by itself unless it is told not to. */
function startPrincipal(
  options: { projects?: Listed[]; applications?: Listed[]; acknowledges?: boolean; clock?: Clock } = {},
) {
  const calls: string[] = [];
  const sent: Message[] = [];
  const acknowledged: string[] = [];
  const warnings: object[] = [];
  const kindOf = (kind: ResyncKind, listed: Listed[] = []) => ({
    start: nothing,
    syncFor: () => sourceSync(kind, calls, listed),
    forgetAgent: () => void calls.push(`${kind} forgotten`),
  });
  const mirrors = { start: nothing, syncFor: () => copySync('Application', calls), forgetAgent: nothing };
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
  return { principal, connection, calls, sent, acknowledged, warnings };
}

let events = 0;
const resync = (message: Omit<ResyncMessage, 'resourceId' | 'eventId' | 'target'>, eventId = `e${++events}`) =>
  ({ target: 'resourceResync', resourceId: 'r', eventId, ...message }) as ResyncMessage;
const update = (kind: ResyncKind, name: string, uid: string) =>
  resync({ type: 'request-update', payload: { kind, name, uid, checksum: null, digest: '' } });
const list = (payload: { checksum: string | null; complete?: boolean }) =>
  resync({ type: 'request-synced-resource-list', payload });
const listed = (name: string): Listed => ({ id: `id-${name}`, name, namespace: 'hub', uid: `uid-${name}` });

test('a new agent is asked once for its copies, and receives no state before its answer; projects come first', async () => {
  const { principal, connection, calls, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  expect(calls).toEqual(['AppProject connected', 'Application connected']);
  principal.receive('a', update('Application', 'x', 'u'));
  await vi.advanceTimersByTimeAsync(10);
  expect(sent.map(({ type }) => type)).toEqual(['request-resource-resync']);
  expect(calls.slice(2)).toEqual(['Application holds x u', 'AppProject open', 'Application open']);
});

test('an agent that does not answer receives all states after 30 s of silence', async () => {
  const { principal, connection, calls } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(25_000);
  principal.receive('a', update('Application', 'x', 'u'));
  await vi.advanceTimersByTimeAsync(29_500);
  expect(calls).not.toContain('Application open');
  await vi.advanceTimersByTimeAsync(600);
  expect(calls).toContain('Application open');
});

test('an agent that is slow to answer gets only what it lacks', async () => {
  const { principal, connection, calls, sent } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(20_000);
  principal.receive('a', update('Application', 'x', 'u'));
  principal.acknowledged('a', sent.at(-1) as Message);
  await vi.advanceTimersByTimeAsync(0);
  expect(calls.slice(2)).toEqual(['Application holds x u', 'AppProject open', 'Application open']);
});

test('a principal that is too busy to read the reports waits longer, within a bound', async () => {
  let now = 0;
  const timers = new Set<() => void>();
  const clock = {
    now: () => now,
    after: (_: number, run: () => void) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
  };
  const { principal, connection, calls } = startPrincipal({ clock });
  principal.connected('a', 'managed', connection);
  await Promise.resolve();
  const fireTimers = () => {
    now += 3_000;
    for (const run of [...timers]) {
      if (timers.delete(run)) {
        run();
      }
    }
    return calls.includes('Application open');
  };
  expect([fireTimers(), fireTimers(), fireTimers(), fireTimers(), fireTimers(), fireTimers()]).toEqual([
    false,
    false,
    false,
    false,
    false,
    true,
  ]);
});

test('an agent that is disconnected before its answer is asked once on the next connection', async () => {
  const { principal, connection, sent, calls } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  principal.disconnected('a', connection);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(calls).not.toContain('Application open');
  principal.connected('a', 'managed', connection);
  principal.acknowledged('a', sent[1] as Message);
  expect(sent.map(({ type }) => type)).toEqual(['request-resource-resync', 'request-resource-resync']);
});

test('an agent that was silent is asked again on the next connection: the former may have been broken', async () => {
  const { principal, connection, sent, calls } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(40_000);
  expect(calls).toContain('Application open');
  sent.length = 0;
  principal.connected('a', 'managed', { ...connection });
  const asked = () => sent.filter(({ type }) => type === 'request-resource-resync');
  expect(asked()).toHaveLength(1);
  principal.acknowledged('a', asked().at(-1) as Message);
  const before = asked().length;
  principal.connected('a', 'managed', { ...connection });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked()).toHaveLength(before);
  expect(calls.filter((line) => line === 'Application open')).toHaveLength(1);
});

test('an agent that reconnects is not asked again; a newer connection replaces the older one', async () => {
  const { principal, connection, calls, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(3_000);
  const second = { ...connection };
  calls.length = 0;
  principal.connected('a', 'managed', second);
  principal.disconnected('a', connection);
  expect(calls.filter((line) => line.startsWith('Application'))).toEqual([
    'Application disconnected',
    'Application connected',
  ]);
  principal.disconnected('a', second);
  expect(calls.at(-1)).toBe('Application disconnected');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sent).toHaveLength(1);
});

test('a repeated message is acknowledged but not processed again; a lost one is processed on the next connection', () => {
  const { principal, connection, calls, acknowledged } = startPrincipal();
  principal.connected('a', 'managed', connection);
  const message = update('AppProject', 'x', 'u');
  principal.receive('a', message);
  principal.receive('a', message);
  const reports = () => calls.filter((line) => line === 'AppProject holds x u').length;
  expect(reports()).toBe(1);
  expect(acknowledged).toEqual([message.eventId, message.eventId]);
  principal.connected('a', 'managed', connection);
  principal.receive('a', message);
  expect(reports()).toBe(2);
});

test('a list that equals the hub for all kinds causes no message', () => {
  const { principal, connection, calls, sent } = startPrincipal({
    projects: [listed('p')],
    applications: [listed('x')],
  });
  principal.connected('a', 'managed', connection);
  const checksum = resourceListChecksum([
    { kind: 'Application', name: 'x', uid: 'uid-x' },
    { kind: 'AppProject', name: 'p', uid: 'uid-p' },
  ]);
  calls.length = sent.length = 0;
  principal.receive('a', list({ checksum, complete: true }));
  principal.receive('a', list({ checksum }));
  expect([...calls, ...sent]).toEqual([]);
});

test('a complete list without an object means that the agent lacks it', () => {
  const { principal, connection, calls } = startPrincipal({
    projects: [listed('p'), listed('q')],
    applications: [listed('p')],
  });
  principal.connected('a', 'managed', connection);
  principal.receive('a', update('AppProject', 'p', 'uid-p'));
  calls.length = 0;
  principal.receive('a', list({ checksum: 'other', complete: true }));
  expect(calls).toEqual(['AppProject lacks id-q', 'Application lacks id-p']);
});

test('an agent whose list may be incomplete is asked about the other objects, like the original does', async () => {
  const { principal, connection, calls, sent } = startPrincipal({
    projects: [listed('p')],
    applications: [listed('x')],
  });
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(3_000);
  principal.receive('a', update('AppProject', 'p', 'uid-p'));
  calls.length = sent.length = 0;
  principal.receive('a', list({ checksum: 'other' }));
  expect(calls).toEqual([]);
  expect(sent).toMatchObject([
    { type: 'response-synced-resource', payload: { kind: 'Application', name: 'x', namespace: 'hub', uid: 'uid-x' } },
  ]);
});

test('an agent that acknowledges before it has reported all gets more time; one that reports the end of its list does not', async () => {
  const { principal, connection, calls } = startPrincipal();
  principal.connected('a', 'managed', connection);
  await vi.advanceTimersByTimeAsync(200);
  principal.receive(
    'a',
    resync({ type: 'request-update', payload: { kind: 'Application', name: 'x', uid: 'u', checksum: 's' } }),
  );
  await vi.advanceTimersByTimeAsync(200);
  expect(calls).not.toContain('Application open');
  principal.receive('a', list({ checksum: null, complete: true }));
  expect(calls).toContain('Application open');
});

test('an empty hub sends an empty agent nothing, whether the list is null or absent', () => {
  const { principal, connection, calls, sent } = startPrincipal();
  principal.connected('a', 'managed', connection);
  calls.length = sent.length = 0;
  principal.receive('a', list({ checksum: null }));
  principal.receive('a', list({ checksum: '' }));
  expect([...calls, ...sent]).toEqual([]);
});

test('a message that an agent may not send is acknowledged and logged, with a limit on log lines', async () => {
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

test('acknowledgements reach the kind that they are for', () => {
  const { principal, connection, sent } = startPrincipal({ acknowledges: false });
  principal.connected('a', 'managed', connection);
  expect(sent).toHaveLength(1);
  principal.acknowledged('a', { resourceId: 'Application-x', eventId: 'e' });
  expect(principal.stats('a').pending).toBe(1);
  principal.acknowledged('a', sent[0] as Message);
  expect(principal.stats('a').pending).toBe(0);
});

test('an agent that connects in another mode is another agent', () => {
  const { principal, connection, calls } = startPrincipal();
  principal.connected('a', 'managed', connection);
  principal.connected('a', 'autonomous', connection);
  expect(calls).toContain('Application closed');
  expect(calls).toContain('Application forgotten');
  principal.receive('a', resync({ type: 'request-resource-resync', payload: {} }));
  expect(calls.at(-1)).toBe('Application source restarted');
});

test('an agent that the principal does not know receives nothing', () => {
  const { principal, calls } = startPrincipal();
  principal.receive('nobody', update('Application', 'x', 'u'));
  principal.writable('nobody');
  principal.acknowledged('nobody', { resourceId: 'r', eventId: 'e' });
  expect(calls).toEqual([]);
  expect(principal.stats('nobody')).toEqual(quiet);
});

/** A managed agent with a project and two Applications, and a principal that acknowledges when it is told to. */
function startAgent() {
  const calls: string[] = [];
  const waiting: Message[] = [];
  const sent: Message[] = [];
  const acknowledged: string[] = [];
  const copy = (name: string): Copy => ({ ref: { namespace: 'here', name }, name, uid: `uid-${name}` });
  const kindOf = (kind: ResyncKind, copies: Copy[]) => ({ ...copySync(kind, calls, copies), start: nothing });
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
  return { agent, connection, connect, answer, calls, sent, acknowledged };
}

const reported = (sent: Message[]) =>
  sent.map((message) =>
    message.type === 'request-update' ? `${message.payload.kind} ${message.payload.name}` : message.type,
  );

test('an agent that starts reports its copies and, when they are acknowledged, the end of the list', () => {
  const { connect, answer, sent } = startAgent();
  connect();
  expect(reported(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
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

test('an agent that is disconnected before all is acknowledged reports everything again on the next connection', () => {
  const { agent, connect, connection, answer, sent } = startAgent();
  connect();
  answer();
  agent.disconnected(connection);
  sent.length = 0;
  connect();
  expect(reported(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
  answer();
  expect(reported(sent).at(-1)).toBe('request-synced-resource-list');
});

test('every kind answers a principal that asks; its question is acknowledged once, after all answers are', () => {
  const { agent, connect, answer, sent, calls, acknowledged } = startAgent();
  connect();
  answer();
  answer();
  connect();
  sent.length = 0;
  const question = resync({ type: 'request-resource-resync', payload: {} });
  agent.receive(question);
  agent.receive(question);
  expect(reported(sent)).toEqual(['AppProject p', 'Application x', 'Application y']);
  expect(calls).toEqual(['AppProject source restarted', 'Application source restarted']);
  expect(acknowledged).toEqual([]);
  answer();
  expect(acknowledged).toEqual([question.eventId]);
  agent.receive(question);
  expect(acknowledged).toHaveLength(2);
  expect(calls).toHaveLength(2);
});

test('asked about one object, an agent reports its copy, or that it has none', () => {
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
