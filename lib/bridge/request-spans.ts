import type { ObservedRequest } from '../kube/index.ts';
import { parseResourcePath } from '../live/index.ts';
import type { AttributeValue, Tracer } from '../tracing/index.ts';

/** Longest text of an attribute. */
const longest = 300;

/**
 * How a request to the Kubernetes API stands in traces: `GET pods/log`, with the object's place. A path that is none of a resource
 * is left out, as queries and bodies are: it may hold anything.
 * @param path without the query
 */
export function kubernetesRequest(
  method: string,
  path: string,
): { readonly name: string; readonly attributes: Readonly<Record<string, AttributeValue>> } {
  const verb = /^[A-Z]{1,16}$/.test(method) ? method : 'OTHER';
  const attributes: Record<string, AttributeValue> = { 'http.request.method': verb };
  const parts = parseResourcePath(path);
  if (parts === undefined) {
    return { name: verb, attributes };
  }
  const { group, namespace, resource, name, subresource } = parts;
  const type = subresource === '' ? resource : `${resource}/${subresource}`;
  const known = {
    'k8s.resource.group': group,
    'k8s.resource.type': type,
    'k8s.resource.namespace': namespace,
    'k8s.resource.name': name,
  };
  for (const [key, value] of Object.entries(known)) {
    if (value !== '') {
      attributes[key] = value.slice(0, longest);
    }
  }
  return { name: `${verb} ${type}`, attributes };
}

/** Traces the requests to the API server: each is a span of the work that it was made for. A watch's ends with its beginning. */
export function kubeRequestSpans(tracer: Tracer): (request: ObservedRequest) => void {
  return ({ method, path, status, seconds }) => {
    const { name, attributes } = kubernetesRequest(method, path);
    const span = tracer.start(name, { kind: 'client', parent: tracer.active, attributes, secondsAgo: seconds });
    if (status === 0) {
      span.end('no answer of the API server');
    } else {
      span.end(status < 400 ? undefined : `HTTP status ${status}`, { 'http.response.status_code': status });
    }
  };
}
