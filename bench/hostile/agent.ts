/* A hostile agent, a process of its own: it prepares its attacks, waits for a line on standard input, and then
 * attacks a principal at full speed until it is ended. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Attacker } from '../../e2e/hostile/index.ts';
import { agentCertificates } from '../load/pki.ts';
import { type Attack, attacksOf } from './attacks.ts';

const [port = '', pki = '', name = '', only = ''] = process.argv.slice(2);
/** A call that takes nothing any more is given up. */
const patienceMs = 2_000;
/** Logins and connections that are made beside each attack. */
const beside = 10;

const certificates = await agentCertificates(pki, [name]);
const target = { port: Number(port), ca: certificates.ca, certificate: certificates.of(name) };
const attacks = attacksOf(name).filter((attack) => attack.name.includes(only));

process.stdout.write('{}\n');
await once(process.stdin, 'data');
for (let round = 0; ; round++) {
  const attack = attacks[round % attacks.length] as Attack;
  const sent = await carryOut(attack).catch(() => 0);
  process.stdout.write(`${JSON.stringify({ attack: attack.name, sent })}\n`);
}

/** The bytes that were sent. */
async function carryOut(attack: Attack): Promise<number> {
  const attacker = await Attacker.connect(target);
  try {
    const { accessToken, code } = await attacker.login();
    if (code !== 0) {
      // The principal has had enough of it for now.
      await sleep(10);
      return 0;
    }
    await Promise.all(Array.from({ length: beside }, () => Promise.race([attacker.login(), sleep(patienceMs)])));
    const headers = { authorization: accessToken, ...(attack.isCompressed ? { 'grpc-encoding': 'gzip' } : {}) };
    const call =
      attack.method === 'Subscribe'
        ? attacker.subscribe(accessToken, headers)
        : attacker.call('/principal.apis.logstreamapi.LogStreamService/StreamLogs', headers);
    let sent = 0;
    for (const bytes of attack.frames) {
      await Promise.race([call.write(bytes), sleep(patienceMs)]);
      if (call.isOver) {
        break;
      }
      sent += bytes.length;
    }
    return sent;
  } finally {
    attacker.close();
  }
}
