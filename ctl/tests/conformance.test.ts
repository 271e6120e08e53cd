import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  deletionOfAbsent,
  faulty,
  type PeerFaults,
  type PlayedPrincipal,
  playPrincipal,
  wirePeer,
} from '../../e2e/peer/index.ts';
import { AuthError, GoExpression, mtlsMethod } from '../../lib/auth/index.ts';
import { createAuthority, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { eventTypes, messageEvent, principalSource, targets } from '../../lib/wire/index.ts';
import { runCases } from '../conformance/case.ts';
import { loginCases } from '../conformance/login-cases.ts';
import { Player } from '../conformance/player.ts';
import { conformanceReport } from '../conformance/report.ts';
import { streamCases } from '../conformance/stream-cases.ts';
import { runCtl } from '../testing/run-ctl.ts';

// The suite against a principal of a few lines, which does one thing wrong at a time.

const origin = { source: principalSource };

/** What a principal does wrong. */
interface Faults extends PeerFaults {
  /** It says nothing about objects that it does not have. */
  readonly silentAboutAbsence?: boolean;
  /** It takes any method of logging in. */
  readonly anyMethod?: boolean;
}

let authority: KeyCertificate;
let serverCertificate: KeyCertificate;
let client: KeyCertificate;
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'conformance' });
  [serverCertificate, client] = await Promise.all([
    issueCertificate({ authority, commonName: 'principal', hosts: ['127.0.0.1'], usages: ['server'] }),
    issueCertificate({ authority, commonName: 'cluster1', usages: ['client'] }),
  ]);
});

let principal: PlayedPrincipal | undefined;
afterEach(() => principal?.close());

async function startPrincipal(faults: Faults): Promise<PlayedPrincipal> {
  const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
  const peer = wirePeer(principalSource, {
    ...faulty(faults, principalSource),
    handle(event) {
      if (event.type !== eventTypes.requestUpdate || faults.silentAboutAbsence) {
        return undefined;
      }
      try {
        peer.say(deletionOfAbsent(event, principalSource));
      } catch {
        return 'no JSON';
      }
      return undefined;
    },
  });
  peer.say(messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, origin));
  return playPrincipal({
    tls: {
      cert: serverCertificate.certificate,
      key: serverCertificate.key,
      clientCa: authority.certificate,
      requireClientCertificate: true,
    },
    authenticate: async (request, info) => {
      if (request.method !== 'mtls' && !faults.anyMethod) {
        throw new AuthError('bad-credentials', 'another method');
      }
      return mtls.authenticate({ ...request, method: 'mtls' }, info);
    },
    matchCertificateSubject: true,
    peer: () => peer,
  });
}

/** Runs the suite; the names of the cases that failed. */
async function failuresWith(faults: Faults): Promise<{ failed: string[]; report: string }> {
  principal = await startPrincipal(faults);
  const { signal } = new AbortController();
  const player = await Player.meet({
    host: '127.0.0.1',
    port: principal.port,
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
