import type { SharedFleet } from '../fleet/index.ts';

/** The versions of what others made, in one line: Kubernetes and Helm as they say themselves, and what else is given. */
export async function versionsLine(fleet: SharedFleet, others: Readonly<Record<string, string>>): Promise<string> {
  const { body } = await fleet.hub.client.request('/version');
  const { gitVersion } = JSON.parse(await body.text()) as { gitVersion: string };
  const helm = await fleet.helm('version', '--template', '{{.Version}}');
  const versions = { Kubernetes: gitVersion, ...others, Helm: helm.trim() };
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version.replace(/^v|\+unknown$/g, '')}`)
    .join(', ');
}
