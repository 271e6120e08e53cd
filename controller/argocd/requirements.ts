import { matchesAny } from '../../lib/argocd/index.ts';
import { argoCdParamsName, namesText, quoted, redisProxyName } from '../hub/index.ts';
import type { Parameter } from './parameters.ts';

/** Address of the principal's Redis proxy for Argo CD in the same namespace. */
const redisProxy = `${redisProxyName}:6379`;

/** What a parameter of the hub's Argo CD must be, so that its UI shows the clusters. */
export interface ParameterRequirement {
  readonly parameter: Parameter;
  readonly wanted: string;
  /** Whether a value is as good as the wanted one. */
  readonly fits: (value: string) => boolean;
  /** Whether nothing is lost when the wanted value takes the place of this one. Other values are the user's. */
  readonly mayReplace: (value: string) => boolean;
  /** What does not work without it. */
  readonly effect: string;
  /** What to know before a value of the user's own is replaced. */
  readonly caution: (value: string) => string;
}

/**
 * Argo CD's server must take its cache from the principal's proxy, which adds the resource trees of the clusters.
 * @param forwardsTo address of the Redis to which the proxy passes on everything else: only that one may be replaced
 */
export function redisRequirement(namespace: string, forwardsTo: string): ParameterRequirement {
  const same = (a: string, b: string) => inNamespace(a, namespace) === inNamespace(b, namespace);
  return {
    parameter: 'redis.server',
    wanted: redisProxy,
    fits: (value) => same(value, redisProxy),
    mayReplace: (value) => same(value, forwardsTo),
    effect: 'the UI shows no resource trees of the clusters',
    caution: (value) =>
      `The proxy forwards to ${quoted(forwardsTo)}: if Argo CD's Redis is ${quoted(value)}, first set the chart's value principal.redis.server.address to it`,
  };
}

/**
 * Argo CD's server must put before its keys in Redis what the principal expects there. Nobody's prefix is changed.
 * @param known the prefix with which the principal has started
 */
export function keyPrefixRequirement(known: string): ParameterRequirement {
  return {
    parameter: 'redis.key.prefix',
    wanted: known,
    fits: (value) => value === known,
    mayReplace: () => false,
    effect: 'the UI shows neither resource trees nor information about the clusters',
    caution: () =>
      `That is the prefix of the principal, which reads ${argoCdParamsName} when it starts. Only Argo CD 3.6 and later put a prefix before keys`,
  };
}

/** Argo CD's server must not ask Sentinels for its Redis: they would not lead it to the principal's proxy. */
export function sentinelRequirement(): ParameterRequirement {
  return {
    parameter: 'redis.sentinel.hosts',
    wanted: '',
    fits: (value) => value.trim() === '',
    mayReplace: () => false,
    effect:
      "Argo CD asks Sentinels for its Redis, not the principal's proxy, so the UI shows no resource trees of the clusters",
    caution: () =>
      "The proxy does not ask Sentinels either: first set the chart's value principal.redis.server.address to an address that always leads to the master, for example that of an HAProxy",
  };
}

/** Argo CD must serve the Applications in these namespaces, which have the names of clusters. */
export function namespacesRequirement(clusters: readonly string[]): ParameterRequirement {
  const left = (value: string) => clusters.filter((cluster) => !matchesAny(entriesOf(value), cluster));
  return {
    parameter: 'application.namespaces',
    wanted: '*',
    fits: (value) => left(value).length === 0,
    mayReplace: (value) => value.trim() === '',
    effect: "the UI does not show the Applications in the clusters' namespaces",
    caution: (value) => `It leaves out ${namesText(left(value))}. Instead of "*" you can add them to the list`,
  };
}

/** Entries of the list that are looked at: whoever lists more meant a glob. */
const mostEntries = 1_000;
const entriesOf = (value: string) =>
  value
    .split(',', mostEntries)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

/** An address of a Service without the parts that are implied in its namespace. */
function inNamespace(address: string, namespace: string): string {
  const [, host = address, port = ''] = /^(.*?)\.?(:\d+)?$/.exec(address.trim()) ?? [];
  const implied = new RegExp(`^([^.]+)\\.${namespace}(\\.svc(\\.cluster\\.local)?)?$`);
  return `${host.replace(implied, '$1')}${port || ':6379'}`;
}
