import { isIP } from 'node:net';
import { splitHostPort, wellKnown } from '../../lib/base/index.ts';
import {
  agentClusterSecretName,
  clusterConfigIn,
  clusterSecret,
  identityIn,
  type ProxyIdentity,
  withIdentity,
} from '../../lib/clusters/index.ts';
import { isAlreadyExists, type Secret, secrets } from '../../lib/kube/index.ts';
import { boolFlag, decodeSecret, ExitError, FatalError, listFlag, stringFlag } from '../../lib/ops/index.ts';
import { inspectCertificate, isKeyOf, parseCertificates } from '../../lib/pki/index.ts';
import { asFatal, authorityOf, ctlManager, firstCertificate, issueFor } from '../authority.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { type KeyValues, keyFlags, rejectKeyFlags } from '../key-flags.ts';
import { formatted, inFormat, outputFlag } from '../output.ts';

const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const isSubdomain = (text: string) => text.length <= 253 && dnsSubdomain.test(text);

const createFlags = {
  'resource-proxy-server': stringFlag({
    usage: "host:port of the principal's resource proxy",
    default: 'argocd-agent-resource-proxy:9090',
  }),
  label: listFlag({ usage: 'label of the cluster, key=value; may be repeated', short: 'l' }),
  'tls-from-secret': stringFlag({
    usage: 'Secret [namespace/]name with the client certificate (tls.crt, tls.key), instead of issuing one',
  }),
  'ca-from-secret': stringFlag({ usage: 'Secret [namespace/]name with the authority of the proxy (ca.crt)' }),
  ...keyFlags(180, 'only for a certificate that is issued'),
};

/** The commands about the hub's configuration of agents. */
export const agentCommands = [
  ctlCommand({
    name: 'agent create',
    summary: 'Create the configuration of an agent on the hub',
    arguments: ['NAME'],
    flags: createFlags,
    run: async (flags, ctl) => {
      const [agent = ''] = ctl.args;
      const isGiven = flags['tls-from-secret'] !== '' && flags['ca-from-secret'] !== '';
      if (!isGiven && (flags['tls-from-secret'] !== '' || flags['ca-from-secret'] !== '')) {
        throw new FatalError('Both --tls-from-secret and --ca-from-secret must be provided together');
      }
      if (isGiven) {
        rejectKeyFlags(ctl.given, 'are only used when generating certificates from the PKI');
      }
      const labels = labelsOf(flags.label);
      const address = flags['resource-proxy-server'];
      checkAddress(address);
      if (!isSubdomain(agent)) {
        throw new FatalError(`invalid agent name: ${JSON.stringify(agent)} is not a DNS name`);
      }
      if ((await load(ctl, agent, 'Reading cluster secret')) !== undefined) {
        throw new FatalError(`Agent ${agent} exists.`);
      }
      const identity = isGiven
        ? await givenIdentity(ctl, flags['tls-from-secret'], flags['ca-from-secret'])
        : await newIdentity(ctl, agent, flags);
      const { client, namespace } = ctl.principal();
      const secret = clusterSecret(namespace, { agent, address, identity }, { labels });
      await client.create(secrets, secret, { fieldManager: ctlManager, signal: ctl.signal }).catch((error: unknown) => {
        if (isAlreadyExists(error)) {
          throw new FatalError(`Agent ${agent} exists.`);
        }
        return asFatal('Could not create cluster secret')(error);
      });
      ctl.print(`Agent ${agent} created\n`);
    },
  }),
  ctlCommand({
    name: 'agent list',
    summary: 'List the agents that the hub knows',
    flags: {
      label: listFlag({ usage: 'only agents whose labels match; may be repeated', short: 'l' }),
      output: outputFlag(),
    },
    run: async ({ label, output }, { principal, print, signal }) => {
      const { client, namespace } = principal();
      const labelSelector = [...label, wellKnown.agentNameLabel].join(',');
      const found = await client
        .list(secrets, { namespace, labelSelector, signal })
        .catch(asFatal('Could not list secrets'));
      const agents = found.map(({ metadata }) => metadata.name.replace(/^cluster-/, ''));
      const text = () => (agents.length === 0 ? 'No agents found.\n' : agents.map((agent) => `${agent}\n`).join(''));
      print(inFormat(agents, output, text));
      if (agents.length === 0) {
        throw new ExitError(1);
      }
    },
  }),
  ctlCommand({
    name: 'agent inspect',
    aliases: ['agent show'],
    summary: 'Show the configuration of an agent',
    arguments: ['AGENT'],
    flags: { output: stringFlag({ usage: 'format: json, yaml or text', default: 'json', short: 'o' }) },
    run: async ({ output }, ctl) => {
      const [agent = ''] = ctl.args;
      const secret = await load(ctl, agent, 'Unable to load agent configuration');
      if (secret === undefined) {
        ctl.say(`No such agent configured: ${agent}`);
        throw new ExitError(1);
      }
      const { server = '', name = '' } = decodeSecret(secret);
      const { certificate, key } = identityIn(secret);
      const info = readable(() => {
        if (!isKeyOf(certificate, key)) {
          throw new Error('the private key is of another certificate');
        }
        return inspectCertificate(certificate);
      }, 'Not a valid certificate');
      const { length } = parseCertificates(certificate);
      if (length > 1) {
        throw new FatalError(
          `Certificate chain contains ${length} entries, but only 1 is expected. Please ensure the secret contains a single certificate.`,
        );
      }
      const shown = {
        server,
        name,
        notValidBefore: info.notBefore,
        notValidAfter: info.notAfter,
        fingerprint: info.fingerprint,
      };
      const text = {
        server: 'Server address',
        name: 'Server name',
        notValidBefore: 'Not valid before',
        notValidAfter: 'Not valid after',
        fingerprint: 'Fingerprint (SHA-256)',
      };
      ctl.print(formatted(shown, output, text));
    },
  }),
  ctlCommand({
    name: 'agent print-tls',
    aliases: ['agent dump-tls'],
    summary: "Print Argo CD's certificate, key or authority for an agent",
    arguments: ['AGENT'],
    flags: { type: stringFlag({ usage: 'what to print: cert, key or ca', default: 'cert', short: 't' }) },
    run: async ({ type }, ctl) => {
      const [agent = ''] = ctl.args;
      const secret = await load(ctl, agent, 'Error loading cluster');
      if (secret === undefined) {
        ctl.say(`Agent '${agent}' is not configured.`);
        throw new ExitError(1);
      }
      const { certificate, key, ca } = identityIn(secret);
      const text: Record<string, string> = { cert: certificate, key, ca };
      const found = text[type.toLowerCase()];
      if (found === undefined) {
        throw new FatalError(`unknown TLS asset type ${JSON.stringify(type)}; expected one of cert, key, or ca`);
      }
      ctl.print(found);
    },
  }),
  ctlCommand({
    name: 'agent reconfigure',
    summary: "Change the configuration of an agent: address, credentials, Argo CD's certificate",
    arguments: ['AGENT'],
    flags: {
      'resource-proxy-server': stringFlag({
        usage: "URL of the principal's resource proxy; stored as it is, so write https://HOST:PORT?agentName=NAME",
      }),
      'resource-proxy-username': stringFlag({ usage: 'user name for the resource proxy' }),
      'resource-proxy-password': stringFlag({ usage: 'password for the resource proxy' }),
      'reissue-client-cert': boolFlag({ usage: 'issue another client certificate' }),
      ...keyFlags(180, 'only with --reissue-client-cert'),
    },
    run: reconfigure,
  }),
];

async function reconfigure(
  flags: KeyValues & {
    readonly 'resource-proxy-server': string;
    readonly 'resource-proxy-username': string;
    readonly 'resource-proxy-password': string;
    readonly 'reissue-client-cert': boolean;
  },
  ctl: Ctl,
): Promise<void> {
  const [agent = ''] = ctl.args;
  const secret = await load(ctl, agent, 'Unable to load agent configuration');
  if (secret === undefined) {
    ctl.say(`No configuration found for agent ${agent}`);
    throw new ExitError(1);
  }
  if (!flags['reissue-client-cert']) {
    rejectKeyFlags(ctl.given, 'are only used with --reissue-client-cert');
  }
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const data = { ...secret.data };
  const config: Record<string, unknown> = { ...clusterConfigIn(secret) };
  let isChanged = false;
  const change = (value: string, old: unknown, what: string, write: () => void) => {
    if (value !== '' && value !== old) {
      ctl.say(`Setting new ${what}`);
      write();
      isChanged = true;
    }
  };
  const server = flags['resource-proxy-server'];
  change(server, decodeSecret(secret).server, 'server address', () => {
    data.server = encode(server);
  });
  for (const field of ['username', 'password'] as const) {
    const value = flags[`resource-proxy-${field}`];
    change(value, config[field], field, () => {
      config[field] = value;
      data.config = encode(JSON.stringify(config));
    });
  }
  if (flags['reissue-client-cert']) {
    const identity = await newIdentity(ctl, agent, flags);
    Object.assign(data, withIdentity({ ...secret, data }, identity));
    isChanged = true;
  }
  if (isChanged) {
    const { client } = ctl.principal();
    await client
      .replace(secrets, { ...secret, data }, { fieldManager: ctlManager, signal: ctl.signal })
      .catch(asFatal('Unable to save cluster secret'));
    ctl.say('Cluster configuration saved');
  }
}

async function load({ principal, signal }: Ctl, agent: string, what: string): Promise<Secret | undefined> {
  const { client, namespace } = principal();
  return client.get(secrets, { namespace, name: agentClusterSecretName(agent) }, signal).catch(asFatal(what));
}

/** A client certificate of the hub's authority. */
async function newIdentity(ctl: Ctl, agent: string, flags: KeyValues): Promise<ProxyIdentity> {
  const { namespace } = ctl.principal();
  const missing = `could not read CA secret ${namespace}/argocd-agent-ca: there is none; run argocd-agentctl pki init`;
  const authority = await authorityOf(ctl.principal(), ctl.signal, missing).catch(asFatal('could not read CA secret'));
  const made = await issueFor(authority, { commonName: agent, usages: ['client'] }, flags);
  return { cert: made.certificate, key: made.key, ca: firstCertificate(authority.certificate) };
}

/** The identity in Secrets of the user's own. */
async function givenIdentity(ctl: Ctl, tls: string, ca: string): Promise<ProxyIdentity> {
  const { client, namespace: own } = ctl.principal();
  const read = async (reference: string, what: string, fields: readonly string[]) => {
    const slash = reference.indexOf('/');
    const namespace = (slash > 0 ? reference.slice(0, slash) : '') || own;
    const name = reference.slice(slash + 1);
    const found = await client
      .get(secrets, { namespace, name }, ctl.signal)
      .catch(asFatal(`could not read ${what} secret ${namespace}/${name}`));
    if (found === undefined) {
      throw new FatalError(`could not read ${what} secret ${namespace}/${name}: it does not exist`);
    }
    const text = decodeSecret(found);
    return fields.map((field) => {
      if (text[field] === undefined) {
        throw new FatalError(`${what} secret ${namespace}/${name} does not contain key '${field}'`);
      }
      return text[field];
    });
  };
  const [cert = '', key = ''] = await read(tls, 'TLS', ['tls.crt', 'tls.key']);
  const isPair = readable(() => isKeyOf(cert, key), `invalid TLS certificate/key pair in secret ${tls}`);
  if (!isPair) {
    throw new FatalError(`invalid TLS certificate/key pair in secret ${tls}: the key is of another certificate`);
  }
  const [authorities = ''] = await read(ca, 'CA', ['ca.crt']);
  return { cert, key, ca: authorities };
}

function readable<T>(read: () => T, what: string): T {
  try {
    return read();
  } catch (cause) {
    throw new FatalError(`${what}: ${(cause as Error).message}`, { cause });
  }
}

/** @throws FatalError for an address at which nothing can be */
function checkAddress(address: string): void {
  const parts = splitHostPort(address);
  const [host = '', port] = parts === undefined ? address.split(':', 2) : [parts.host, String(parts.port)];
  if (port === undefined || (isIP(host) === 0 && !isSubdomain(host))) {
    throw new FatalError(`invalid address: ${address}`);
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new FatalError(`invalid port: ${port}`);
  }
}

/** @throws FatalError for what is no label, or one that is given twice */
function labelsOf(entries: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const entry of entries) {
    const at = entry.indexOf('=');
    if (at < 0) {
      throw new FatalError(`couldn't parse label definition '${entry}'`);
    }
    const key = entry.slice(0, at);
    if (Object.hasOwn(labels, key)) {
      throw new FatalError(`label '${key}' already set with value '${labels[key]}'`);
    }
    labels[key] = entry.slice(at + 1);
  }
  return labels;
}
