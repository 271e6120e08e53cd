import type { Logger } from '../../lib/base/index.ts';
import { events, type KubeClient } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { gitOpsClusters } from '../hub/index.ts';

/** A row of `kubectl get gitopsclusters`, by column, as the API server prints it. */
export async function printed(client: KubeClient, namespace: string, name: string): Promise<Record<string, unknown>> {
  const { group, version, plural } = gitOpsClusters;
  const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}/${name}`;
  const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
  const table = JSON.parse(await (await client.request(path, { headers })).body.text()) as {
    columnDefinitions: { name: string }[];
    rows: { cells: unknown[] }[];
  };
  return Object.fromEntries(table.columnDefinitions.map((column, index) => [column.name, table.rows[0]?.cells[index]]));
}

/** Lines of `kubectl describe` for a GitOpsCluster: one for each condition (`type status reason: message`) and Event. */
export async function described(client: KubeClient, namespace: string, name: string): Promise<string> {
  const [found, all] = await Promise.all([
    client.get(gitOpsClusters, { namespace, name }),
    client.list(events, { namespace }),
  ]);
  const conditions = found?.status?.conditions ?? [];
  return [
    ...conditions.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`),
    ...all
      .filter(({ regarding }) => regarding?.kind === 'GitOpsCluster' && regarding.name === name)
      .map(({ type, reason, note }) => `${type} ${reason}: ${note}`),
  ].join('\n');
}

/** A logger, and the text that it has written. */
export function capturedLog(): { logger: Logger; text(): string } {
  const lines: string[] = [];
  return {
    logger: createLogger({ name: 'gitops-controller', destination: { write: (line) => void lines.push(line) } }),
    text: () => lines.join(''),
  };
}
