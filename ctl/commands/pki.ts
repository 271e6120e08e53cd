import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { subjectOf } from '../../lib/auth/index.ts';
import { secrets } from '../../lib/kube/index.ts';
import { boolFlag, ExitError, FatalError, listFlag, stringFlag } from '../../lib/ops/index.ts';
import {
  createAuthority,
  inspectCertificate,
  parseCertificates,
  pkcs8Pem,
  secretText,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import {
  asFatal,
  authorityOf,
  checkDays,
  firstCertificate,
  issueFor,
  keyPairIn,
  names,
  organization,
  putSecret,
} from '../authority.ts';
import { type Ctl, ctlCommand, type Side } from '../ctl-command.ts';
import { type KeyValues, keyAlgorithmOf, keyFlags } from '../key-flags.ts';
import { formatted, mailTime, type PrintedObject } from '../output.ts';
import { openPrompt } from '../prompt.ts';

const day = 24 * 3_600_000;
const upsert = boolFlag({ usage: 'replace a certificate that exists', short: 'u' });
const notInitialized = 'CA is not initialized.';

/** The commands about the hub's own certificate authority. */
export const pkiCommands = [
  ctlCommand({
    name: 'pki init',
    summary: 'Make the certificate authority',
    flags: { force: boolFlag({ usage: 'replace an authority that exists', short: 'f' }), ...keyFlags(3_650) },
    run: async (flags, ctl) => {
      const side = ctl.principal();
      const key = { namespace: side.namespace, name: names.authority };
      const live = await side.client.get(secrets, key, ctl.signal).catch(asFatal('Error getting secret'));
      if (live !== undefined && !flags.force) {
        throw new FatalError('CA secret already exist. Please delete it before generating.');
      }
      checkDays(flags.days);
      const algorithm = keyAlgorithmOf(flags);
      ctl.print('Generating CA and storing it in secret\n');
      const made = await createAuthority({
        commonName: names.authority,
        organizations: [organization],
        algorithm,
        lifetimeMs: flags.days * day,
      });
      const data = tlsSecretData({ certificate: made.certificate, key: pkcs8Pem(made.key) });
      await putSecret(side, { metadata: key, type: 'kubernetes.io/tls', data }, ctl).catch(
        asFatal('Could not write to secret'),
      );
      ctl.print(`Success. CA data stored in secret ${side.namespace}/${names.authority}\n`);
    },
  }),
  ctlCommand({
    name: 'pki inspect',
    summary: 'Show the authority and the certificates of principal, resource proxy and HA administrator',
    flags: {
      full: boolFlag({ usage: 'accepted for compatibility; shows the same', short: 'f' }),
      output: stringFlag({ usage: 'format: json, yaml or text', default: 'json', short: 'o' }),
    },
    run: async ({ output }, ctl) => {
      const ca = await certificateIn(ctl, names.authority, true);
      if (ca === undefined) {
        const where = `${ctl.targets.principal.namespace}/${names.authority}`;
        throw new FatalError(`CA is not initialized: Secret ${where} does not exist; run argocd-agentctl pki init`);
      }
      const resourceProxy = (await certificateIn(ctl, names.resourceProxyTls)) ?? nothing;
      const principal = (await certificateIn(ctl, names.principalTls)) ?? nothing;
      // Shown only where it exists: argocd-agent's tool has no such line.
      const haAdmin = await certificateIn(ctl, names.haAdminTls);
      const labels = { ca: 'CA', principal: 'Principal', resourceProxy: 'Resource Proxy' };
      ctl.print(
        haAdmin === undefined
          ? formatted({ ca, principal, resourceProxy }, output, labels)
          : formatted({ ca, principal, resourceProxy, haAdmin }, output, { ...labels, haAdmin: 'HA Admin' }),
      );
    },
  }),
  ctlCommand({
    name: 'pki delete',
    summary: 'Delete the certificate authority',
    flags: {},
    run: async (_, ctl) => {
      const { client, namespace } = ctl.principal();
      const key = { namespace, name: names.authority };
      const live = await client.get(secrets, key, ctl.signal).catch(asFatal('Error getting secret'));
      if (live === undefined) {
        throw new FatalError('CA not configured.');
      }
      const prompt = openPrompt(ctl);
      const answer = await prompt
        .ask('Really delete CA (use uppercase YES to delete)?: ')
        .finally(() => prompt.close());
      if (answer !== 'YES') {
        ctl.print(`${answer}\nAborted.\n`);
        throw new ExitError(1);
      }
      await client
        .delete(secrets, key, { uid: live.metadata.uid, signal: ctl.signal })
        .catch(asFatal(`Could not delete secret ${names.authority}`));
      ctl.print('CA successfully deleted.\n');
    },
  }),
  ctlCommand({
    name: 'pki dump',
    summary: "Print the authority's certificate and key as PEM",
    flags: {
      all: boolFlag({ usage: 'both' }),
      key: boolFlag({ usage: 'the private key' }),
      cert: boolFlag({ usage: 'the certificate' }),
    },
    run: async ({ all, key, cert }, ctl) => {
      if (!all && !key && !cert) {
        throw new FatalError('One of --all, --key or --cert must be specified.');
      }
      const authority = await authorityOf(ctl.principal(), ctl.signal, 'CA not configured.').catch(
        asFatal('could not read CA secret'),
      );
      ctl.print(
        `${all || cert ? firstCertificate(authority.certificate) : ''}${all || key ? pkcs8Pem(authority.key) : ''}`,
      );
    },
  }),
  ctlCommand({
    name: 'pki issue principal',
    aliases: ['pki new-cert principal'],
    summary: "Issue the principal's certificate",
    flags: {
      ip: listFlag({ usage: 'IP addresses that it is valid for', default: ['127.0.0.1'] }),
      dns: listFlag({ usage: 'DNS names that it is valid for', default: ['localhost'] }),
      upsert,
      ...keyFlags(180),
    },
    run: (flags, ctl) => issueServer(flags, ctl, names.principalTls, 'argocd-agent-principal'),
  }),
  ctlCommand({
    name: 'pki issue resource-proxy',
    aliases: ['pki new-cert resource-proxy'],
    summary: "Issue the resource proxy's certificate",
    flags: {
      ip: listFlag({ usage: 'IP addresses that it is valid for' }),
      dns: listFlag({ usage: 'DNS names that it is valid for' }),
      'no-san': boolFlag({ usage: 'without addresses and names' }),
      upsert,
      ...keyFlags(180),
    },
    run: async (flags, ctl) => {
      if (flags.ip.length === 0 && flags.dns.length === 0 && !flags['no-san']) {
        ctl.print(
          'Please pass at least one of --ip or --dns options or use --no-san to create certificate without SAN\n',
        );
        throw new ExitError(1);
      }
      await issueServer(flags, ctl, names.resourceProxyTls, 'argocd-agent-resource-proxy');
    },
  }),
  ctlCommand({
    name: 'pki issue agent',
    aliases: ['pki new-cert agent'],
    summary: "Issue an agent's client certificate, onto its cluster",
    arguments: ['NAME'],
    flags: {
      upsert,
      'same-context': boolFlag({ usage: 'hub and agent may be in the same context' }),
      'agent-namespace': stringFlag({ usage: "the agent's namespace", default: 'argocd' }),
      ...keyFlags(180),
    },
    run: async (flags, ctl) => {
      const [agent = ''] = ctl.args;
      const { principal, agent: cluster } = ctl.targets;
      if (principal.context === '' || cluster.context === '') {
        throw new FatalError('Both principal and agent kubecontext must be set.');
      }
      if (principal.context === cluster.context && !flags['same-context']) {
        throw new FatalError(
          'PKI and agent usually do not reside within the same context. Use --same-context if you really mean it.',
        );
      }
      const target = { ...ctl.agent(), namespace: flags['agent-namespace'] };
      await issue(flags, ctl, target, { name: names.clientTls, commonName: agent, usages: ['client'], hosts: [] });
      await handOverAuthority(ctl, target, true);
    },
  }),
  ctlCommand({
    name: 'pki issue shared-client',
    aliases: ['pki new-cert shared-client'],
    summary: 'Issue the client certificate that clusters which register themselves share',
    description:
      'Argo CD shows it to the resource proxy. The principal takes it from the Secret that --self-registration-client-cert-secret names.',
    flags: { upsert, ...keyFlags(180) },
    run: async (flags, ctl) => {
      if (ctl.targets.principal.context === '') {
        throw new FatalError('Principal kubecontext must be set.');
      }
      const commonName = 'argocd-agent-shared-client';
      await issue(flags, ctl, ctl.principal(), {
        name: names.sharedClientTls,
        commonName,
        usages: ['client'],
        hosts: [],
      });
    },
  }),
  ctlCommand({
    name: 'pki issue ha-admin',
    aliases: ['pki new-cert ha-admin'],
    summary: 'Issue a client certificate for the commands "ha"',
    description: 'Whom principals obey says their flag --ha-admin-auth, for example mtls:subject:^CN=ha-admin,O=',
    flags: {
      name: stringFlag({ usage: 'common name of the certificate', default: 'ha-admin' }),
      upsert,
      ...keyFlags(180),
    },
    run: async (flags, ctl) => {
      if (flags.name === '') {
        throw new FatalError('--name must not be empty');
      }
      await issue(flags, ctl, ctl.principal(), {
        name: names.haAdminTls,
        commonName: flags.name,
        usages: ['client'],
        hosts: [],
      });
    },
  }),
  ctlCommand({
    name: 'pki propagate',
    summary: "Copy the authority's certificate to an agent's cluster",
    flags: { force: boolFlag({ usage: 'replace the one that is there', short: 'f' }) },
    run: async ({ force }, ctl) => {
      const { principal, agent } = ctl.targets;
      if (principal.context === agent.context) {
        throw new FatalError('PKI and agent cannot reside within the same context.');
      }
      if (principal.context === '' || agent.context === '') {
        throw new FatalError('Must specify both principal and agent contexts.');
      }
      await handOverAuthority(ctl, ctl.agent(), force);
    },
  }),
];

interface ServerValues extends KeyValues {
  readonly ip: readonly string[];
  readonly dns: readonly string[];
  readonly upsert: boolean;
}

async function issueServer(flags: ServerValues, ctl: Ctl, name: string, commonName: string): Promise<void> {
  const addresses = flags.ip.map((ip) => ip.trim());
  const wrong = addresses.find((ip) => isIP(ip) === 0);
  if (wrong !== undefined) {
    throw new FatalError(`Error generating certificate: invalid IP address: ${wrong}`);
  }
  await issue(flags, ctl, ctl.principal(), {
    name,
    commonName,
    usages: ['server'],
    hosts: [...addresses, ...flags.dns],
  });
}

/** Issues a certificate into a Secret of a side. */
async function issue(
  flags: KeyValues & { readonly upsert: boolean },
  ctl: Ctl,
  side: Side,
  request: {
    readonly name: string;
    readonly commonName: string;
    readonly usages: readonly ('server' | 'client')[];
    readonly hosts: readonly string[];
  },
): Promise<void> {
  keyAlgorithmOf(flags);
  const authority = await authorityOf(ctl.principal(), ctl.signal, notInitialized).catch(
    asFatal('Error getting CA certificate'),
  );
  const { name, ...wanted } = request;
  const key = { namespace: side.namespace, name };
  const live = await side.client.get(secrets, key, ctl.signal).catch(asFatal('Could not read secret'));
  if (live !== undefined && !flags.upsert) {
    throw new FatalError('Certificate exists, please use --upsert to reissue.');
  }
  const data = tlsSecretData(await issueFor(authority, wanted, flags));
  const done = await putSecret(side, { metadata: key, type: 'kubernetes.io/tls', data }, ctl).catch(
    asFatal('Could not write secret'),
  );
  ctl.print(`Secret ${side.namespace}/${name} ${done === 'created' ? 'created' : 'updated.'}\n`);
}

/** Writes the authority's certificate, without its key, to the agent's side. */
async function handOverAuthority(ctl: Ctl, side: Side, mayReplace: boolean): Promise<void> {
  const { client, namespace } = ctl.principal();
  const authority = await client
    .get(secrets, { namespace, name: names.authority }, ctl.signal)
    .catch(asFatal('Error getting CA secret from principal'));
  const certificate = secretText(authority?.data, 'tls.crt');
  if (certificate === undefined) {
    const what = `Secret ${namespace}/${names.authority}`;
    throw new FatalError(
      `Error getting CA secret from principal: ${what} ${authority === undefined ? 'does not exist' : 'has no tls.crt'}`,
    );
  }
  const key = { namespace: side.namespace, name: names.authority };
  const live = await side.client.get(secrets, key, ctl.signal).catch(asFatal('Error getting agent CA secret'));
  if (live !== undefined && !mayReplace) {
    throw new FatalError('Agent CA secret already exists. Please delete it before propagating.');
  }
  if (live?.type === 'kubernetes.io/tls') {
    throw new FatalError(
      `Secret ${key.namespace}/${key.name} is an authority with its key: hub and agent are in one namespace. An agent does not need it there`,
    );
  }
  const data = { 'ca.crt': Buffer.from(certificate).toString('base64') };
  await putSecret(side, { metadata: key, type: 'Opaque', data }, ctl).catch(asFatal('Error updating agent CA secret'));
  ctl.print(`Agent CA secret ${side.namespace}/${names.authority} created\n`);
}

const keyTypes: Readonly<Record<string, string>> = { rsa: 'RSA', ec: 'ECDSA', ed25519: 'Ed25519' };

/** What is shown of a certificate that does not exist. */
const nothing: PrintedObject = {
  subject: '',
  keyType: '',
  keyLength: 0,
  notBefore: '',
  notAfter: '',
  sha256: '',
  ips: undefined,
  dns: undefined,
  warnings: undefined,
};

async function certificateIn(ctl: Ctl, name: string, isAuthority = false): Promise<PrintedObject | undefined> {
  const pair = await keyPairIn(ctl.principal(), name, ctl.signal).catch(asFatal(`Error reading ${name}`));
  const [certificate] = pair === undefined ? [] : parseCertificates(pair.certificate);
  if (certificate === undefined) {
    return undefined;
  }
  const info = inspectCertificate(certificate.toString());
  const warnings = isAuthority && !info.isAuthority ? ['This is not a CA certificate'] : [];
  const shown = (list: readonly string[]) => (list.length === 0 ? undefined : list);
  const { asymmetricKeyType: type = '', asymmetricKeyDetails: details } = certificate.publicKey;
  const bits: Record<string, number | undefined> = {
    rsa: details?.modulusLength,
    ec: { prime256v1: 256, secp384r1: 384, secp521r1: 521 }[details?.namedCurve ?? ''],
    ed25519: 256,
  };
  return {
    subject: subjectOf(certificate),
    keyType: keyTypes[type] ?? type,
    keyLength: bits[type] ?? 0,
    notBefore: mailTime(info.notBefore),
    notAfter: mailTime(info.notAfter),
    sha256: createHash('sha256').update(certificate.raw).digest('hex'),
    ips: shown(info.ipAddresses),
    dns: shown(info.dnsNames),
    warnings: shown(warnings),
  };
}
