import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AuthError, GoExpression, mtlsMethod, TokenAuthority } from '../../lib/auth/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import {
  acknowledgement,
  eventTypes,
  isAcknowledgement,
  messageEvent,
  objectEvent,
  principalSource,
  type Session,
  serveWire,
  targets,
  type WireEvent,
  type WireServer,
} from '../../lib/wire/index.ts';
import { runCases } from '../conformance/case.ts';
import { loginCases } from '../conformance/login-cases.ts';
import { Player } from '../conformance/player.ts';
import { conformanceReport } from '../conformance/report.ts';
import { streamCases } from '../conformance/stream-cases.ts';
import { runCtl } from '../testing/run-ctl.ts';

// The suite against a principal of a few lines, which does one thing wrong at a time.

const origin = { source: principalSource };
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** What a principal does wrong. */
interface Faults {
  /** It acknowledges by the ids alone. */
  readonly bareAcknowledgements?: boolean;
  /** It does not acknowledge repetitions. */
  readonly deafToRepetitions?: boolean;
  /** It says nothing about objects that it does not have. */
  readonly silentAboutAbsence?: boolean;
  /** It does not remember what was not acknowledged. */
  readonly forgetful?: boolean;
  /** It takes any method of logging in. */
  readonly anyMethod?: boolean;
}

let authority: KeyCertificate;
let serverCertificate: KeyCertificate;
let client: KeyCertificate;
let jwtKey: string;
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'conformance' });
  [serverCertificate, client, jwtKey] = await Promise.all([
    issueCertificate({ authority, commonName: 'principal', hosts: ['127.0.0.1'], usages: ['server'] }),
    issueCertificate({ authority, commonName: 'cluster1', usages: ['client'] }),
    generateJwtKey(2048),
  ]);
});

let server: WireServer | undefined;
afterEach(() => server?.close());

async function startPrincipal(faults: Faults): Promise<WireServer> {
  const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
  let question: WireEvent | undefined = messageEvent(
    targets.resourceResync,
    eventTypes.requestResourceResync,
    {},
    origin,
  );
  const done = new Set<string>();
  const take = ({ stream }: Session, event: WireEvent) => {
    if (isAcknowledgement(event)) {
      question = event.eventId === question?.eventId ? undefined : question;
      return;
    }
    if (faults.deafToRepetitions && done.has(event.eventId)) {
      return;
    }
    done.add(event.eventId);
    const { resourceid = '', eventid = '' } = event.extensions;
    const answer = acknowledgement(event, principalSource);
    stream.send(faults.bareAcknowledgements ? { ...answer, extensions: { resourceid, eventid } } : answer);
    if (event.type === eventTypes.requestUpdate && !faults.silentAboutAbsence) {
      answerAbsence(stream, event);
    }
  };
  return serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: {
      cert: serverCertificate.certificate,
      key: serverCertificate.key,
      clientCa: authority.certificate,
      requireClientCertificate: true,
    },
    version: '1.0.0',
    principalNamespace: 'argocd',
    tokens: TokenAuthority.fromPem(jwtKey),
    authenticate: async (request, peer) => {
      if (request.method !== 'mtls' && !faults.anyMethod) {
        throw new AuthError('bad-credentials', 'another method');
      }
      return mtls.authenticate({ ...request, method: 'mtls' }, peer);
    },
    matchCertificateSubject: true,
    subscribe: (session) => {
      if (question !== undefined) {
        session.stream.send(question);
        question = faults.forgetful ? undefined : question;
      }
      return { event: (event) => take(session, event), closed: () => undefined };
    },
    live: undefined,
    logger: silent,
  });
}

function answerAbsence(stream: Session['stream'], { data }: WireEvent): void {
  try {
    const { name, uid, namespace } = JSON.parse(Buffer.from(data).toString()) as Record<string, string>;
    const metadata = { name: name ?? '', uid: uid ?? '', namespace: namespace ?? '' };
    stream.send(objectEvent(targets.application, eventTypes.delete, { metadata }, origin));
  } catch {
    // Not JSON: acknowledged, and left.
  }
}

/** Runs the suite; the names of the cases that failed. */
async function failuresWith(faults: Faults): Promise<{ failed: string[]; report: string }> {
  server = await startPrincipal(faults);
  const { signal } = new AbortController();
  const player = await Player.meet({
    host: '127.0.0.1',
    port: server.port,
    tls: { ca: authority.certificate, cert: client.certificate, key: client.key },
    mode: 'managed',
    method: 'mtls',
    credentials: {},
    version: '',
    timeoutMs: 2_000,
    signal,
  });
  try {
    const results = await runCases([...streamCases, ...loginCases], player, { signal });
    return {
      failed: results.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name),
      report: conformanceReport(results, 'here', 'text'),
    };
  } finally {
    player.close();
  }
}

describe('a principal', { timeout: 60_000 }, () => {
  test('that conforms passes', async () => {
    const { failed, report } = await failuresWith({});
    expect(failed).toEqual([]);
    expect(report).toMatch(/^passed +Acknowledgements +what is not acknowledged comes again/m);
    expect(report).toMatch(/here: \d+ passed, 0 failed, 0 skipped\n$/);
  });

  test.each<[keyof Faults, string[]]>([
    ['bareAcknowledgements', ['a heartbeat is acknowledged with all its extensions']],
    ['deafToRepetitions', ['an event that comes twice is acknowledged twice']],
    ['forgetful', ['what is not acknowledged comes again on the next stream']],
    ['anyMethod', ['a login by an unknown method is refused']],
    [
      'silentAboutAbsence',
      [
        'events of the principal have all their attributes',
        'asked about an Application that it does not have, the principal says delete',
      ],
    ],
  ])('with the fault %s fails what it breaks, and nothing else', async (fault, names) => {
    expect((await failuresWith({ [fault]: true })).failed).toEqual(names);
  });
});

test('what is missing on the command line is said', async () => {
  const run = (...args: string[]) => runCtl(['conformance', 'principal', ...args]);
  expect((await run('here')).err).toContain('"here" is not the address of a principal: host:port');
  expect((await run('a:1', '--client-cert=x')).err).toContain('--client-cert and --client-key go together');
  expect((await run('a:1', '--creds=nothing')).err).toContain('--creds must be mtls:any, header:any or userpass:FILE');
  expect((await run('127.0.0.1:1', '--plaintext')).err).toContain('cannot be asked for its version');
});
