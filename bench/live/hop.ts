/*
 * The floor that live access can be held against: a process that passes requests on to a server, and what that answers back, and
 * does nothing else. Two in a row stand where principal and agent do. It is started with the server's kubeconfig and the file of its
 * own certificate and key, and says on which port it listens.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { KubeClient } from '../../lib/kube/index.ts';

const [kubeconfig = '', material = ''] = process.argv.slice(2);
const pem = readFileSync(material, 'utf8');
const client = KubeClient.load({ kubeconfig });
const server = createServer({ cert: pem, key: pem }, async (request, response) => {
  const answer = await client.request(request.url ?? '/');
  response.writeHead(answer.status, { 'content-type': answer.headers['content-type'] });
  for await (const bytes of answer.body) {
    if (!response.write(bytes)) {
      await once(response, 'drain');
    }
  }
  response.end();
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
