import { principalObjects } from '../../lib/base/index.ts';
import { kubeClient } from '../../lib/bridge/index.ts';
import {
  ConnectionError,
  configMaps,
  deployments,
  isForbidden,
  type KubeClient,
  type Service,
  services,
} from '../../lib/kube/index.ts';
import { FatalError, type FlagValues } from '../../lib/ops/index.ts';
import { fleetPageHosts } from '../../lib/pki/index.ts';
import type { hubCommandFlags } from './hub-flags.ts';
import { ensurePki, type Pki, type PkiOptions } from './pki.ts';

const defaultService = 'argocd-agent-principal';

/** Address and port at which agents reach the principal. */
export interface PrincipalAddress {
  readonly host: string;
  readonly port: number;
}

/** A hub, for commands that prepare it. */
export interface OperatorHub {
  readonly client: KubeClient;
  /** The address that the principal's Service has got from a load balancer; undefined when it has none. */
  address(): Promise<PrincipalAddress | undefined>;
  /** The image of the principal's Deployment; undefined when there is none, or the caller may not see it. */
  principalImage(): Promise<string | undefined>;
  /** See {@link ensurePki}; the addresses of the principal's Service and the names of the fleet page's come on top. */
  ensurePki(addresses: readonly string[]): Promise<Pki>;
}

/**
 * Opens the hub that the flags name.
 * @throws FatalError when the kubeconfig cannot be used
 */
export function openHub(
  flags: FlagValues<typeof hubCommandFlags>,
  { signal, report }: { readonly signal: AbortSignal; readonly report: PkiOptions['report'] },
): OperatorHub {
  const { namespace } = flags;
  const client = kubeClient(flags);
  const labelSelector = principalObjects.labelSelector;
  const principalServices = () => client.list(services, { namespace, labelSelector, signal });
  return {
    client,
    address: () => explained(client, async () => addressesOf(agentsService(await principalServices()))[0]),
    async principalImage() {
      try {
        const [found] = await client.list(deployments, { namespace, labelSelector, signal });
        return found?.spec?.template?.spec?.containers[0]?.image;
      } catch (error) {
        if (isForbidden(error)) {
          return undefined;
        }
        throw error;
      }
    },
    ensurePki: (addresses) =>
      explained(client, async () => {
        const found = await principalServices();
        const service = agentsService(found);
        return ensurePki({
          client,
          namespace,
          names: {
            authority: flags['tls-ca-secret-name'],
            principal: flags['tls-secret-name'],
            resourceProxy: flags['resource-proxy-secret-name'],
            tokenKey: flags['jwt-secret-name'],
          },
          service: service?.metadata.name ?? defaultService,
          addresses: [
            ...addresses,
            ...addressesOf(service).map(({ host }) => host),
            ...fleetPageHosts(found, namespace),
          ],
          report,
          signal,
        });
      }),
  };
}

/** The one for agents. Metrics, proxies and the fleet page have Services with the same labels. */
function agentsService(found: readonly Service[]): Service | undefined {
  return found.find((one) => one.spec?.ports?.some(({ name }) => name === 'https'));
}

function addressesOf(service: Service | undefined): PrincipalAddress[] {
  const port = service?.spec?.ports?.find(({ name }) => name === 'https')?.port ?? 443;
  return (service?.status?.loadBalancer?.ingress ?? []).flatMap(({ hostname, ip }) =>
    [hostname, ip].flatMap((host) => (host ? [{ host, port }] : [])),
  );
}

/** Runs requests to the hub. @throws FatalError that says what to do when the hub cannot be reached or refuses */
export async function explained<T>(client: Pick<KubeClient, 'server'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConnectionError) {
      const hint = 'check --kubeconfig and --kubecontext, and that the hub is up';
      throw new FatalError(`the hub at ${client.server} cannot be reached: ${error.message}; ${hint}`, {
        cause: error,
      });
    }
    if (isForbidden(error)) {
      throw new FatalError(`the hub refuses: ${(error as Error).message}`, { cause: error });
    }
    throw error;
  }
}

/** The settings of the principal, from its ConfigMap; empty when there is none. */
export async function principalParams(
  { client }: Pick<OperatorHub, 'client'>,
  namespace: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const [found] = await client.list(configMaps, {
    namespace,
    labelSelector: principalObjects.labelSelector,
    signal,
  });
  return found?.data ?? {};
}
