import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { isDnsLabel } from '../../lib/base/index.ts';
import { mapOf, quoted } from '../hub/index.ts';
import { credentialIn } from './credentials.ts';

/** A container of the repo server with a config management plugin. */
export interface Plugin {
  /** Undefined: Argo CD's image. */
  readonly image?: string | undefined;
  /** `spec` of a ConfigManagementPlugin. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** As in a container. */
  readonly env?: readonly Readonly<Record<string, unknown>>[] | undefined;
}

/** Settings of the Argo CD and the agents on the clusters. Nothing that is not set is undefined or empty: it is absent. */
export interface ClusterSettings {
  /** Keys of the ConfigMap argocd-cm. */
  readonly config?: Readonly<Record<string, string>> | undefined;
  /** Keys of the ConfigMap argocd-cmd-params-cm. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** Keys of the ConfigMap argocd-tls-certs-cm: certificates of Git servers, PEM, by host. */
  readonly tlsCertificates?: Readonly<Record<string, string>> | undefined;
  /** Lines for the ConfigMap argocd-ssh-known-hosts-cm, besides those that Argo CD has. */
  readonly sshKnownHosts?: string | undefined;
  /** By name. */
  readonly plugins?: Readonly<Record<string, Plugin>> | undefined;
  readonly replicas?:
    | { readonly applicationController?: number | undefined; readonly repoServer?: number | undefined }
    | undefined;
  /** Keys of the agent's ConfigMap argocd-agent-params. */
  readonly agentParams?: Readonly<Record<string, string>> | undefined;
}

/** Most entries of one map, as in the CRD. */
const mostEntries = 256;
/**
 * Most bytes of all settings as JSON. They are in the environment of the controller, where Linux takes 128 KiB, and in
 * an annotation of each work.
 */
export const mostBytes = 64 * 1024;

/** Parameters of the agent that the controller itself determines, and where. */
const ownedParams: Readonly<Record<string, string>> = {
  'agent.server.address': 'spec.argoCDAgentAddon.principalServerAddress',
  'agent.server.port': 'spec.argoCDAgentAddon.principalServerPort',
  'agent.namespace': 'spec.argoCDAgentAddon.agentNamespace',
  'agent.mode': 'spec.argoCDAgentAddon.mode',
  'agent.live-access': 'spec.argoCDAgentAddon.liveAccess',
  'agent.destination-based-mapping': 'spec.argoCDAgentAddon.destinationBasedMapping',
  'agent.creds': '',
  'agent.tls.root-ca-secret-name': '',
  'agent.tls.secret-name': '',
  'agent.tls.client.insecure': '',
  'agent.tls.insecure-plaintext': '',
  'agent.metrics.port': '',
  'agent.healthz.port': '',
};

const setting = z
  .string({ error: ({ input }) => `must be a text (in quotes), not ${quoted(input)}` })
  .refine((text) => !text.includes('\0'), { error: 'must not contain the character NUL' });

/** The data of a ConfigMap. */
const data = mapOf(setting, mostEntries)
  .superRefine((values, { addIssue }) => {
    for (const [key, value] of Object.entries(values)) {
      const problem = /^[-._a-zA-Z0-9]{1,253}$/.test(key)
        ? credentialIn(key, value)
        : 'is no key of a ConfigMap, which has letters, digits, "-", "_" and "." (at most 253)';
      if (problem !== undefined) {
        addIssue({ code: 'custom', path: [key], message: problem });
      }
    }
  })
  .optional();

const params = data.superRefine((values, { addIssue }) => {
  const key = 'repo.server';
  // A script of the application controller's pod contains it.
  if (values?.[key] !== undefined && !/^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,251}[a-zA-Z0-9])?:\d{1,5}$/.test(values[key])) {
    addIssue({ code: 'custom', path: [key], message: `must be <host>:<port>, not ${quoted(values[key])}` });
  }
});

const agentParams = data.superRefine((values, { addIssue }) => {
  for (const key of Object.keys(values ?? {})) {
    const where = ownedParams[key];
    if (where !== undefined) {
      const instead = where === '' ? '' : `; set ${where}`;
      addIssue({ code: 'custom', path: [key], message: `is determined by the controller${instead}` });
    }
  }
});

const tlsCertificates = mapOf(setting, mostEntries)
  .superRefine((values, { addIssue }) => {
    for (const [host, pem] of Object.entries(values)) {
      const problem = /^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$/.test(host)
        ? (credentialIn(host, pem) ?? noCertificates(pem))
        : 'is no host name; write it without scheme and port';
      if (problem !== undefined) {
        addIssue({ code: 'custom', path: [host], message: problem });
      }
    }
  })
  .optional();

function noCertificates(pem: string): string | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  try {
    blocks?.map((block) => new X509Certificate(block));
  } catch (error) {
    return `has a certificate that cannot be read: ${(error as Error).message}`;
  }
  return blocks === null ? 'must be certificates in PEM (-----BEGIN CERTIFICATE-----)' : undefined;
}

const sshKnownHosts = setting
  .superRefine((text, { addIssue }) => {
    const wrong = text
      .split('\n')
      .map((line) => line.trim())
      .find((line) => line !== '' && !/^(#|(@\S+\s+)?\S+\s+(ssh-|ecdsa-|sk-)\S+\s+[A-Za-z0-9+/]+=*(\s|$))/.test(line));
    const problem = credentialIn('', text) ?? (wrong === undefined ? undefined : lineProblem(wrong));
    if (problem !== undefined) {
      addIssue({ code: 'custom', message: problem });
    }
  })
  .optional();

const lineProblem = (line: string) =>
  `must have lines as ssh-keyscan prints them (host, type, key), not ${quoted(line)}`;

const plugin = z.object({
  image: setting.optional(),
  spec: z.looseObject(
    {
      generate: z.looseObject(
        { command: z.array(z.string()).min(1, { error: 'must not be empty' }) },
        { error: 'must have the command that prints the manifests' },
      ),
    },
    { error: 'must be the spec of a ConfigManagementPlugin' },
  ),
  env: z
    .array(z.looseObject({ name: setting, value: setting.optional() }))
    .superRefine((list, { addIssue }) => {
      for (const [index, { name, value }] of list.entries()) {
        const problem = value === undefined ? undefined : credentialIn(name, value);
        if (problem !== undefined) {
          addIssue({ code: 'custom', path: [index], message: `${problem}; use valueFrom.secretKeyRef` });
        }
      }
    })
    .optional(),
});

const plugins = mapOf(plugin, 16)
  .superRefine((all, { addIssue }) => {
    for (const name of Object.keys(all).filter((one) => !isDnsLabel(one))) {
      const message = 'is no name of a container (lower-case letters, digits, "-"; at most 63)';
      addIssue({ code: 'custom', path: [name], message });
    }
  })
  .optional();

const count = (least: number) =>
  z
    .int({ error: ({ input }) => `must be a number, not ${quoted(input)}` })
    .min(least, { error: `must be at least ${least}` })
    .max(100, { error: 'must be at most 100' })
    .optional();

const unknownFields = {
  error: ({ code, keys }: { code?: string; keys?: unknown }) =>
    code === 'unrecognized_keys' ? `has no field ${[keys].flat().join(', ')}` : undefined,
};

/** Parses `clusterSettings`. Empty: nothing is set. */
export const clusterSettingsSchema: z.ZodType<ClusterSettings> = z
  .strictObject(
    {
      config: data,
      params,
      tlsCertificates,
      sshKnownHosts,
      plugins,
      replicas: z.strictObject({ applicationController: count(1), repoServer: count(0) }, unknownFields).optional(),
      agentParams,
    },
    unknownFields,
  )
  .superRefine(({ params = {}, agentParams = {} }, { addIssue }) => {
    if (params['redis.sentinel.hosts'] && !agentParams['agent.redis.address']) {
      const message =
        'needs agentParams.agent.redis.address, since the agent does not ask Sentinels: set an address that always leads to the master, for example that of an HAProxy';
      addIssue({ code: 'custom', path: ['params', 'redis.sentinel.hosts'], message });
    }
  })
  .refine((settings) => Buffer.byteLength(JSON.stringify(settings)) <= mostBytes, {
    error: `must have at most ${mostBytes / 1024} KiB`,
  });

/**
 * Settings merged key by key: of two values, that of `own` counts. Undefined when nothing is set. Equal settings give equal
 * JSON.
 */
export function mergeSettings(
  base: ClusterSettings | undefined,
  own: ClusterSettings | undefined,
): ClusterSettings | undefined {
  const merged = {
    agentParams: mergeMaps(base?.agentParams, own?.agentParams),
    config: mergeMaps(base?.config, own?.config),
    params: mergeMaps(base?.params, own?.params),
    plugins: mergeMaps(base?.plugins, own?.plugins),
    replicas: mergeMaps(base?.replicas, own?.replicas) as ClusterSettings['replicas'],
    sshKnownHosts: (own?.sshKnownHosts ?? base?.sshKnownHosts) || undefined,
    tlsCertificates: mergeMaps(base?.tlsCertificates, own?.tlsCertificates),
  };
  const set = Object.entries(merged).filter(([, value]) => value !== undefined);
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

function mergeMaps<T>(
  base: Readonly<Record<string, T>> | undefined,
  own: Readonly<Record<string, T>> | undefined,
): Record<string, T> | undefined {
  const entries = Object.entries({ ...base, ...own }).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
