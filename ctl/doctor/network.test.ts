import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from 'vitest';
import { createChain } from '../../e2e/certificate-chain/index.ts';
import { certificateFaults } from './certificates.ts';
import { networkFaults } from './network.ts';

test('a certificate of an authority below the trusted one is no fault when the server shows that one, too', async () => {
  const made = await createChain();
  const other = await createChain();
  const faultsOf = async (authorities: string, cert = made.server.cert) => {
    const server = createServer({ cert, key: made.server.key, ALPNProtocols: ['h2'] });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const endpoint = { host: '127.0.0.1', port, certificate: '', key: '', authorities, cluster: 'east' };
    const found = await networkFaults(endpoint, new AbortController().signal);
    server.close();
    return found.map(({ id }) => id);
  };
  expect(await faultsOf(made.root)).toEqual([]);
  expect(await faultsOf(made.issuing)).toEqual([]);
  expect(await faultsOf(other.root)).toEqual(['server-certificate-wrong-authority']);
  expect(await faultsOf(made.root, made.server.leaf)).toEqual(['server-certificate-wrong-authority']);

  const { cert: certificate, key } = made.agent;
  const examined = { id: 'agent-certificate', cluster: 'east', what: 'it', where: 'there', certificate, key, mend: '' };
  const wrong = (authorities: string) =>
    certificateFaults({ ...examined, authorities }, new Date()).filter(({ id }) => id.endsWith('wrong-authority'));
  expect(wrong(made.root)).toEqual([]);
  expect(wrong(other.root)).toHaveLength(1);
});
