import { namespaces } from '../../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy } from '../../lib/pki/index.ts';
import { names } from '../authority.ts';
import type { Side } from '../ctl-command.ts';
import {
  type Checklist,
  checkAuthorities,
  checkRedisPolicy,
  checkValidity,
  existingPair,
  leafOfSecret,
  operatorInstance,
  textAt,
} from './checks.ts';
import { checkComponents } from './components.ts';
import { principalSecretNames } from './principal-checks.ts';

/** The checks of a cluster against its hub, in the order and with the names of the original. */
export async function checkAgentSide(
  agent: Side,
  principal: Side,
  list: Checklist,
  signal: AbortSignal,
): Promise<void> {
  const instance = await operatorInstance(agent, signal).catch(async (error: unknown) => {
    await list.check('Reading agent secret names from ArgoCD CR', () => {
      throw error;
    });
    return undefined;
  });
  const authority = textAt(instance, 'argoCDAgent', 'agent', 'tls', 'rootCASecretName') ?? names.authority;
  const client = textAt(instance, 'argoCDAgent', 'agent', 'tls', 'secretName') ?? names.clientTls;
  const hub = await principalSecretNames(principal, list, signal);
  const { namespace } = agent;
  await list.check(`Verifying agent CA secret exists and contains CA cert (${namespace}/${authority})`, () =>
    checkAuthorities(agent, authority, signal),
  );
  await list.check(`Verifying agent mTLS certificate exists and is not expired (${namespace}/${client})`, () =>
    checkValidity(agent, client, signal),
  );
  await list.check('Verifying namespace on principal matches agent certificate subject', async () => {
    const { commonName } = inspectCertificate((await leafOfSecret(agent, client, signal)).toString());
    if (commonName.trim() === '') {
      throw new Error('agent certificate subject (CN) is empty');
    }
    if ((await principal.client.get(namespaces, { name: commonName }, signal)) === undefined) {
      throw new Error(`namespace '${commonName}' not found on principal cluster`);
    }
  });
  await list.check('Verifying agent mTLS certificate is signed by principal CA certificate', async () => {
    const certificate = await leafOfSecret(agent, client, signal);
    const pair = await existingPair(principal, hub.authority, signal);
    if (!isIssuedBy(certificate.toString(), pair.certificate)) {
      throw new Error('agent certificate not signed by principal CA');
    }
  });
  await list.check('Verifying Argo CD network policy allows for ingress from agent', () =>
    checkRedisPolicy(agent, 'argocd-agent-agent', signal),
  );
  await list.check('Verifying deployed Argo CD components on agent', () =>
    checkComponents(
      agent,
      { present: ['repo-server', 'application-controller', 'redis'], absent: ['server', 'dex-server'] },
      signal,
    ),
  );
}
