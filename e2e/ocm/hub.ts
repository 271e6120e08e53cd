import type { KubeObject } from '../../lib/kube/index.ts';
import { type Component, freePort, type SharedCluster } from '../testbed/index.ts';
import { admissionServer, ocmComponent } from './component.ts';
import { applyObject, installManifests, ocmManifests, ocmNamespaces } from './installation.ts';

/** A webhook as OCM's operator configures it: behind a Service. */
interface Webhook {
  clientConfig: { service?: { path: string }; url?: string; caBundle?: string };
}

/**
 * Starts what OCM's operator runs on a hub: the controllers of registration and placement, the add-on manager and the
 * admission webhooks. Resolves when all of them answer.
 */
export async function startHubComponents(
  hub: SharedCluster,
  { signal, crashed }: { signal: AbortSignal; crashed: (error: Error) => void },
): Promise<Component[]> {
  const manifests = await ocmManifests('hub');
  const isWebhook = ({ kind }: KubeObject) => kind?.endsWith('WebhookConfiguration') ?? false;
  await installManifests(
    hub.client,
    manifests.filter((object) => !isWebhook(object)),
    signal,
  );
  const { hub: namespace } = ocmNamespaces;
  const account = (name: string) => ({ cluster: hub, account: { namespace, name }, crashed });
  const port = await freePort();
  const components = await Promise.all([
    admissionServer({ hub, port, namespace, crashed }),
    ocmComponent({ ...account('registration-controller-sa'), executable: 'registration', args: ['controller'] }),
    ocmComponent({ ...account('placement-controller-sa'), executable: 'placement', args: ['controller'] }),
    ocmComponent({ ...account('addon-manager-controller-sa'), executable: 'addon', args: ['manager'] }),
  ]);
  try {
    await Promise.all(components.map((component) => component.start()));
    await Promise.all(components.map((component) => component.ready(signal)));
    for (const configuration of manifests.filter(isWebhook) as (KubeObject & { webhooks: Webhook[] })[]) {
      const webhooks = configuration.webhooks.map((webhook) => ({ ...webhook, clientConfig: clientConfig(webhook) }));
      await applyObject(hub.client, { ...configuration, webhooks } as KubeObject);
    }
  } catch (error) {
    await Promise.all(components.map((component) => component.kill()));
    throw error;
  }
  return components;

  /** A Service's endpoints may not be loopback addresses; a URL may have one. */
  function clientConfig({ clientConfig: { service } }: Webhook): Webhook['clientConfig'] {
    const caBundle = Buffer.from(hub.ca).toString('base64');
    return { url: `https://127.0.0.1:${port}${service?.path}`, caBundle };
  }
}
