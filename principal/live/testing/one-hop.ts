import { Agent, request as httpsRequest } from 'node:https';
import { eventTypes, messageEvent, targets } from '../../../lib/wire/index.ts';
import { HeldAgents, makeCallers, type PlayedReplica, playReplica } from './replicas.ts';

// What it costs when a request arrives at a principal that does not have its agent: `npm run bench -- hop`. The agent answers at
// once, so that the difference is the link's alone. Caller, both principals and agent share this process, and so one processor.

const samples = Number(process.argv[2] ?? 2_000);
const warmUp = 300;

const callers = await makeCallers();
const held = new HeldAgents();
const near = await playReplica(held, 'near', callers);
const far = await playReplica(held, 'far', callers);
const { authority, client } = callers;
const agent = new Agent({ keepAlive: true, ca: authority.certificate, cert: client.certificate, key: client.key });
const resource = JSON.stringify({ kind: 'ConfigMap', data: { text: 'x'.repeat(2_000) } });
far.onEvent = (name, { eventId }) => {
  const payload = { uuid: eventId, status: 200, contentType: 'application/json', resource };
  const ids = { resourceId: eventId, eventId };
  far.live.answered(name, messageEvent(targets.resource, eventTypes.response, payload, { source: '' }, ids));
};
far.connected.add('edge');
held.hold('edge', 'far');
const times = new Map<PlayedReplica, number[]>([
  [far, []],
  [near, []],
]);
for (let round = -warmUp; round < samples; round++) {
  // In turns, so that the machine's noise falls on both alike.
  for (const [replica, taken] of times) {
    const begin = performance.now();
    await get(replica);
    if (round >= 0) {
      taken.push(performance.now() - begin);
    }
  }
}
const [direct = 0, forwarded = 0] = [...times.values()].map(median);
process.stdout.write(
  ` GET of an object, p50: at the agent's principal ${direct.toFixed(2)} ms, at another one ${forwarded.toFixed(2)} ms: ${(forwarded - direct).toFixed(2)} ms more\n`,
);
agent.destroy();
await Promise.all([near.stop(), far.stop()]);

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Reads the object. @throws when the answer is not 200 */
function get({ proxy }: PlayedReplica): Promise<void> {
  const path = '/api/v1/namespaces/shop/configmaps/x';
  return new Promise((resolve, reject) => {
    httpsRequest({ host: '127.0.0.1', port: proxy.port, path, agent }, (response) => {
      const { statusCode } = response;
      response
        .on('end', () => (statusCode === 200 ? resolve() : reject(new Error(`the proxy answers ${statusCode}`))))
        .on('error', reject)
        .resume();
    })
      .on('error', reject)
      .end();
  });
}
