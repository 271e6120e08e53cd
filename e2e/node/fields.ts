import { availableParallelism, totalmem } from 'node:os';
import type { KubeletPod } from './types.ts';

/** What only the node knows about a pod, for the downward API. */
export interface PodPlace {
  /** The address at which the pod's processes listen and are reached on this machine. */
  address: string;
  nodeName: string;
  nodeAddress: string;
}

/**
 * The value of a downward API field. Pod and host addresses are the loopback ones, because a program uses them to
 * listen and to be called.
 *
 * @throws when the field is not one that the API allows
 */
export function fieldValue(pod: KubeletPod, place: PodPlace, path: string): string {
  const { metadata, spec } = pod;
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (subscript) {
    return metadata[subscript[1] as 'labels' | 'annotations']?.[subscript[2] ?? ''] ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return metadata.name;
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'metadata.labels':
      return quoted(metadata.labels);
    case 'metadata.annotations':
      return quoted(metadata.annotations);
    case 'spec.nodeName':
      return place.nodeName;
    case 'spec.serviceAccountName':
      return spec.serviceAccountName ?? 'default';
    case 'status.podIP':
    case 'status.podIPs':
      return place.address;
    case 'status.hostIP':
    case 'status.hostIPs':
      return place.nodeAddress;
    default:
      throw new Error(`unsupported pod field ${path}`);
  }
}

function quoted(map: Record<string, string> | undefined): string {
  return Object.entries(map ?? {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort()
    .join('\n');
}

/**
 * The value of a resource field (`limits.cpu`, `requests.memory`, …) in whole cores or bytes, rounded up; the machine's
 * own size where the container has no limit, as a kubelet does.
 */
export function resourceValue(
  resources: { requests?: Record<string, string>; limits?: Record<string, string> } | undefined,
  field: string,
): string {
  const [kind = '', name = ''] = field.split(/\.(.*)/s);
  const set = kind === 'requests' ? resources?.requests?.[name] : resources?.limits?.[name];
  if (set !== undefined) {
    return String(Math.ceil(quantity(set)));
  }
  if (kind === 'requests') {
    return '0';
  }
  return name === 'cpu' ? String(availableParallelism()) : name === 'memory' ? String(totalmem()) : '0';
}

const suffixes: Record<string, number> = {
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The number that a Kubernetes quantity (`100m`, `256Mi`) stands for. */
export function quantity(text: string): number {
  const parsed = /^([0-9.]+)([a-zA-Z]*)$/.exec(text.trim());
  const factor = parsed ? suffixes[parsed[2] ?? ''] : undefined;
  if (!parsed || factor === undefined) {
    throw new Error(`${text} is not a quantity`);
  }
  return Number(parsed[1]) * factor;
}
