import { join } from 'node:path';
import { type KubeObject, resourceType } from '../../lib/kube/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import { freePort, Program } from '../pair/index.ts';
import type { SharedCluster } from '../testbed/index.ts';

const { EXTERNAL_SECRETS_BIN: executable = '', EXTERNAL_SECRETS_SOURCE: source = '' } = process.env;

/** external-secrets.io/v1 SecretStore or ExternalSecret, loosely typed. */
export interface ExternalSecretsObject extends KubeObject {
  spec: object;
  /** Of an ExternalSecret. */
  status?: { refreshTime?: string };
}

const kind = (name: string) =>
  resourceType<ExternalSecretsObject>({
    group: 'external-secrets.io',
    version: 'v1',
    kind: name,
    plural: `${name.toLowerCase()}s`,
    namespaced: true,
  });

/** external-secrets.io/v1 SecretStore: where values come from. */
export const secretStores = kind('SecretStore');
/** external-secrets.io/v1 ExternalSecret: the Secret that they go to. */
export const externalSecrets = kind('ExternalSecret');

/** Starts External Secrets' own controller for a cluster, with its CRDs, without its webhook. The caller stops it. */
export async function startExternalSecrets({ client, kubeconfig }: SharedCluster): Promise<Program> {
  await installCrds(client, await readCrds(join(source, 'config/crds/bases')));
  const program = new Program(
    [`--metrics-addr=127.0.0.1:${await freePort()}`, `--live-addr=127.0.0.1:${await freePort()}`, '--loglevel=info'],
    { KUBECONFIG: kubeconfig },
    executable,
  );
  program.start();
  await program.says(/Starting workers.*ExternalSecret/s);
  return program;
}
