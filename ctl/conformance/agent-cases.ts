import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { specChecksum } from '../../lib/argocd/index.ts';
import {
  agentSource,
  type EventObject,
  eventTypes,
  isAcknowledgement,
  messageEvent,
  type ObjectTarget,
  objectEvent,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { type ConformanceCase, must, Skipped } from './case.ts';
import type { AgentHost, HostedSession } from './host.ts';

const { application, appProject, repository } = targets;

/** An object of the suite, as the hub has it. */
interface Made extends EventObject {
  readonly metadata: { name: string; namespace: string; uid: string; resourceVersion: string; labels?: object };
  readonly spec?: Record<string, unknown>;
  readonly data?: Record<string, string>;
}

/** A kind of object that a managed agent gets. */
interface Kind {
  readonly target: ObjectTarget;
  readonly kind: string;
  /** What it has, in a first and in a second state. */
  readonly content: (state: 'one' | 'two', agent: string) => Pick<Made, 'spec' | 'data'>;
  readonly labels?: object;
}

/** Between two questions about the same object. */
const askAgainMs = 50;
const base64 = (text: string) => Buffer.from(text).toString('base64');
const applications: Kind = {
  target: application,
  kind: 'Application',
  content: (state, agent) => ({
    spec: {
      project: 'default',
      source: { repoURL: 'https://example.com/conformance.git', path: state, targetRevision: 'HEAD' },
      destination: { name: agent, namespace: 'conformance' },
    },
  }),
};
const kinds: readonly Kind[] = [
  applications,
  {
    target: appProject,
    kind: 'AppProject',
    content: (state, agent) => ({
      spec: { description: state, sourceRepos: ['*'], destinations: [{ name: agent, server: '*', namespace: '*' }] },
    }),
  },
  {
    target: repository,
    kind: 'Repository',
    content: (state) => ({
      data: { url: base64(`https://example.com/${state}`), type: base64('git'), project: base64('default') },
    }),
    labels: { 'argocd.argoproj.io/secret-type': 'repository' },
  },
];

const json = ({ data }: WireEvent): Record<string, unknown> => {
  try {
    return JSON.parse(Buffer.from(data).toString('utf8')) as Record<string, unknown>;
  } catch {
    throw new Error('the data is no JSON');
  }
};
const resync = (host: AgentHost, type: string, payload: unknown) =>
  messageEvent(targets.resourceResync, type, payload, host.origin);

async function onlyIn(host: AgentHost, mode: 'managed' | 'autonomous'): Promise<HostedSession> {
  const session = await host.session();
  if (session.agent.mode !== mode) {
    throw new Skipped(`only in mode ${mode}`);
  }
  return session;
}

/** What asks a managed agent about one object. */
const question = (host: AgentHost, { kind }: Kind, { metadata: { name, namespace, uid } }: Made) =>
  resync(host, eventTypes.responseSyncedResource, { kind, name, namespace, uid });

/** Asks a managed agent about one object; its answer, undefined when it has none, or says nothing soon. */
async function told(host: AgentHost, kind: Kind, made: Made): Promise<Record<string, unknown> | undefined> {
  const { talk } = await host.session();
  const from = talk.received.length;
  await talk.exchange(question(host, kind, made), 'response-synced-resource');
  const isAbout = (event: WireEvent) =>
    event.type === eventTypes.requestUpdate &&
    json(event).kind === kind.kind &&
    json(event).name === made.metadata.name;
  const answer = await talk.next(isAbout, from, host.options.silenceMs);
  // An empty uid says that it does not have it.
  const report = answer && json(answer);
  return report?.uid === '' ? undefined : report;
}

/** Asks until the agent says what it should; what is wrong with its last answer otherwise. */
async function toldIn(
  host: AgentHost,
  kind: Kind,
  object: Made,
  what: string,
  wrong: (answer?: Record<string, unknown>) => string | undefined,
): Promise<void> {
  const end = performance.now() + host.options.timeoutMs;
  for (;;) {
    const problem = wrong(await told(host, kind, object));
    if (problem === undefined) {
      return;
    }
    must(performance.now() < end, `${what}: ${problem}`);
    await sleep(askAgainMs);
  }
}

const checksumOf = ({ spec, data }: Made) => specChecksum(spec ?? data ?? {});

/** What is wrong with what an agent says of its copy of an object. */
const notThe = (object: Made) => (answer?: Record<string, unknown>) => {
  if (answer === undefined) {
    return `it does not say that it has ${object.metadata.name}`;
  }
  if (answer.uid !== object.metadata.uid) {
    return `its uid is ${String(answer.uid)}; wanted that of the original, ${object.metadata.uid}`;
  }
  return answer.checksum === checksumOf(object)
    ? undefined
    : `its checksum is ${String(answer.checksum)}; wanted ${checksumOf(object)}`;
};

/** A case with an object that is made for it, and deleted whatever happens. */
function withObject(
  name: string,
  section: string,
  kind: Kind,
  act: (host: AgentHost, made: Made, say: (type: string, object: Made) => Promise<void>) => Promise<string>,
): ConformanceCase<AgentHost> {
  return {
    name: `${name} (${kind.kind})`,
    section,
    async run(host) {
      const { agent } = await onlyIn(host, 'managed');
      const namespace = host.logins.at(-1)?.agentNamespace || 'argocd';
      const metadata = { name: `conformance-${randomUUID().slice(0, 8)}`, namespace, uid: randomUUID() };
      const labels = kind.labels === undefined ? {} : { labels: kind.labels };
      const made: Made = {
        metadata: { ...metadata, resourceVersion: '1', ...labels },
        ...kind.content('one', agent.agent),
      };
      const say = async (type: string, object: Made) => {
        const { talk } = await host.session();
        await talk.exchange(objectEvent(kind.target, type, object, host.origin), type.replace(/^.*\./, ''));
      };
      await say(eventTypes.create, made);
      try {
        return await act(host, made, say);
      } finally {
        await say(eventTypes.delete, { ...made, metadata: { ...made.metadata, resourceVersion: '99' } });
        await toldIn(host, kind, made, 'after its delete', (answer) => answer && `it still has ${made.metadata.name}`);
      }
    },
  };
}

/** A case that sends what must be acknowledged, and changes nothing. */
function acknowledgedBy(
  name: string,
  section: string,
  made: (host: AgentHost) => WireEvent,
): ConformanceCase<AgentHost> {
  return {
    name: `${name} is acknowledged`,
    section,
    async run(host) {
      const { talk } = await host.session();
      await talk.exchange(made(host), name);
      return 'acknowledged';
    },
  };
}

/** A case about a request of the UI. */
function asked(name: string, request: object, right: (status: number, body: string) => string | undefined) {
  return {
    name,
    section: 'Resources',
    async run(host: AgentHost) {
      const { talk } = await host.session();
      const uuid = randomUUID();
      const ids = { resourceId: uuid, eventId: uuid };
      const payload = { uuid, name: '', method: 'GET', group: '', version: 'v1', resource: '', ...request };
      talk.send(messageEvent(targets.resource, 'GET', payload, host.origin, ids));
      const isAnswer = (event: WireEvent) => event.type === eventTypes.response && json(event).uuid === uuid;
      const answer = await talk.expect(isAnswer, 'a response');
      must(answer.eventId === uuid, `its eventid is ${answer.eventId}; wanted that of the request, ${uuid}`);
      must(answer.resourceId !== uuid, 'its resourceid is that of the request');
      const { status, resource } = json(answer);
      const wrong = right(Number(status), typeof resource === 'string' ? resource : '');
      must(wrong === undefined, wrong ?? '');
      return `status ${String(status)}`;
    },
  };
}

/** An event of the mode whose answer says something: what the agent is asked, and what its answer is. */
const unknownApplication = (host: AgentHost) => {
  const [name, uid] = [`conformance-${randomUUID().slice(0, 8)}`, randomUUID()];
  const namespace = host.logins.at(-1)?.agentNamespace || 'argocd';
  const checksum = Buffer.alloc(32).toString('base64');
  const payload = { name, namespace, uid, kind: 'Application', checksum };
  const isAnswer = (event: WireEvent) =>
    event.target === application && event.type === eventTypes.delete && Buffer.from(event.data).includes(name);
  return { event: resync(host, eventTypes.requestUpdate, payload), isAnswer, name, uid };
};

/** Ends the agent's stream and waits for the next one. */
async function nextSession(host: AgentHost): Promise<HostedSession> {
  const session = await host.session();
  const after = host.count;
  session.end();
  return host.session({ after });
}

/** The cases for an agent, which has just started when the first one runs. */
export const agentCases: readonly ConformanceCase<AgentHost>[] = [
  {
    name: 'a login says method, mode, version and namespace',
    section: 'Login',
    async run(host) {
      await host.session();
      const { agent, method, mode, version, agentNamespace } = host.logins.at(-1) as (typeof host.logins)[number];
      must(version !== '', 'it names no version');
      must(agentNamespace !== '', 'it names no agentNamespace');
      return `${agent}: ${method}, ${mode}, ${version}, ${agentNamespace}`;
    },
  },
  {
    name: 'an agent that starts asks to compare, as its mode does',
    section: 'Resync',
    async run(host) {
      const { agent, talk } = await host.session();
      const [type, word] =
        agent.mode === 'managed'
          ? [eventTypes.requestSyncedResourceList, 'request-synced-resource-list']
          : [eventTypes.requestResourceResync, 'request-resource-resync'];
      const event = await talk.expect((one) => one.type === type, word);
      must(event.target === targets.resourceResync, `the target of ${word} is ${event.target}`);
      return word;
    },
  },
  {
    name: 'its events have all their attributes',
    section: 'Events',
    async run(host) {
      const { talk } = await host.session();
      const event = await talk.expect(
        (one) => !isAcknowledgement(one) && one.target !== targets.heartbeat,
        'an event of the agent',
      );
      const { sentat = '', resourceid, eventid } = event.extensions;
      must(resourceid !== undefined && eventid !== undefined, `${event.type} lacks resourceid or eventid`);
      must(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$/.test(sentat), `sentat of ${event.type} is "${sentat}"`);
      must(event.source === agentSource, `its source is "${event.source}"`);
      must(event.data.length === 0 || event.contentType === 'application/json', `its data is ${event.contentType}`);
      return `${event.target} ${event.type}, sent ${sentat}`;
    },
  },
  {
    name: 'an acknowledgement has all extensions of the event, and no data',
    section: 'Acknowledgements',
    async run(host) {
      const { talk } = await host.session();
      const made = resync(host, eventTypes.requestResourceResync, {});
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const event = { ...made, extensions: { ...made.extensions, traceparent: trace } };
      const answer = await talk.exchange(event, 'the event');
      must(answer.type === eventTypes.processed, `its type is ${answer.type}`);
      must(answer.data.length === 0, 'it has data');
      for (const [name, value] of Object.entries(event.extensions)) {
        must(answer.extensions[name] === value, `its ${name} is ${answer.extensions[name]}; wanted ${value}`);
      }
      return `extensions ${Object.keys(answer.extensions).sort().join(', ')}`;
    },
  },
  {
    name: 'an event that comes twice is acknowledged twice',
    section: 'Acknowledgements',
    async run(host) {
      const { talk } = await host.session();
      const event = resync(host, eventTypes.requestResourceResync, {});
      await talk.exchange(event, 'the event');
      await talk.exchange(event, 'its repetition');
      return 'acknowledged twice';
    },
  },
  {
    name: 'after the end of its stream it comes back',
    section: 'Event stream',
    async run(host) {
      const before = host.logins.length;
      await nextSession(host);
      return host.logins.length > before ? 'with a new login' : 'with the same login';
    },
  },
  ...kinds.flatMap((kind) => [
    withObject(
      'what the hub has comes to be a copy, with uid and checksum of the original',
      'Copies',
      kind,
      async (host, made) => {
        await toldIn(host, kind, made, 'after its create', notThe(made));
        return 'there, and told';
      },
    ),
    withObject('a change arrives, and a delete', 'Types', kind, async (host, made, say) => {
      const { agent } = await host.session();
      const { metadata } = made;
      const next = { ...made, metadata: { ...metadata, resourceVersion: '2' }, ...kind.content('two', agent.agent) };
      await say(eventTypes.specUpdate, next);
      await toldIn(host, kind, next, 'after its spec-update', notThe(next));
      return 'changed';
    }),
  ]),
  withObject(
    'what is not acknowledged comes again on the next stream',
    'Acknowledgements',
    applications,
    async (host, made) => {
      const { talk } = await host.session();
      await toldIn(host, applications, made, 'after its create', notThe(made));
      const from = talk.received.length;
      const isAbout = (event: WireEvent) =>
        event.type === eventTypes.requestUpdate && json(event).name === made.metadata.name;
      talk.keepSilent(isAbout);
      talk.send(question(host, applications, made));
      await talk.expect(isAbout, 'request-update', from);
      const next = await nextSession(host);
      await next.talk.expect(isAbout, 'request-update again');
      return 'request-update';
    },
  ),
  {
    name: 'what an autonomous agent says and is not acknowledged comes again on the next stream',
    section: 'Acknowledgements',
    async run(host) {
      const { talk } = await onlyIn(host, 'autonomous');
      const { event, isAnswer } = unknownApplication(host);
      talk.keepSilent(isAnswer);
      talk.send(event);
      const answer = await talk.expect(isAnswer, 'a delete');
      const next = await nextSession(host);
      await next.talk.expect((one) => isAnswer(one) && one.eventId === answer.eventId, 'the delete again');
      return 'delete';
    },
  },
  {
    name: 'asked about an Application that it does not have, an autonomous agent says delete',
    section: 'Resync',
    async run(host) {
      const { talk } = await onlyIn(host, 'autonomous');
      const { event, isAnswer, name, uid } = unknownApplication(host);
      await talk.exchange(event, 'the question');
      const answer = await talk.expect(isAnswer, `a delete of ${name}`);
      const { metadata } = json(answer) as Partial<EventObject>;
      must(metadata?.uid === uid, `its uid is ${metadata?.uid}; wanted that of the question, ${uid}`);
      return `delete ${answer.resourceId}`;
    },
  },
  acknowledgedBy('a resync message from the wrong side', 'Resync', (host) =>
    resync(host, eventTypes.responseSyncedResource, { name: 'x', namespace: 'x', uid: '', kind: 'Application' }),
  ),
  {
    name: 'an event of an unknown target and one without JSON leave the stream as it is',
    section: 'Malformed events',
    async run(host) {
      const { talk } = await host.session();
      const made = resync(host, eventTypes.requestUpdate, {});
      talk.send({ ...messageEvent(targets.resource, 'GET', {}, host.origin), target: 'conformance' });
      talk.send({ ...made, data: Buffer.from('{"name":') });
      await talk.exchange(resync(host, eventTypes.requestResourceResync, {}), 'an event afterwards');
      return 'the stream goes on';
    },
  },
  asked('discovery is answered', { group: 'apps' }, (status, body) =>
    status === 200 && body.includes('APIResourceList') ? undefined : `status ${status}: ${body.slice(0, 100)}`,
  ),
  asked(
    'an object that belongs to no Application is refused',
    { resource: 'configmaps', name: 'kube-root-ca.crt', namespace: 'default' },
    (status, body) => (status >= 400 ? undefined : `status ${status}: ${body.slice(0, 100)}`),
  ),
];
