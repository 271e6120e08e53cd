import { createPrivateKey } from 'node:crypto';
import { hasCredentials, isForRepository, type RepositorySecret } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import { decodeSecret, type TextFields } from '../../lib/ops/index.ts';

/** What is wrong in the Secret of a repository. */
export interface RepositoryProblem {
  readonly id: 'repository-invalid' | 'repository-incomplete';
  /** Goes on after the name of the Secret. It never quotes an address, which may have credentials in it. */
  readonly what: string;
  /** The field that must be set. */
  readonly field: string;
}

const invalid = (field: string, what: string): RepositoryProblem => ({ id: 'repository-invalid', what, field });
const incomplete = (field: string, what: string): RepositoryProblem => ({ id: 'repository-incomplete', what, field });

/** Whether a Secret holds credentials for all addresses that begin alike. */
export const isCredentialTemplate = ({ metadata }: Pick<Secret, 'metadata'>): boolean =>
  metadata.labels?.[wellKnown.secretTypeLabel] === 'repo-creds';

/**
 * What is wrong in the Secret of a repository, the first thing only, as far as it can be told without asking the repository.
 * @param others Secrets whose credential templates it may use
 */
export function repositoryProblem(
  secret: Secret & RepositorySecret,
  others: readonly (Secret & RepositorySecret)[],
): RepositoryProblem | undefined {
  const fields = decodeSecret(secret);
  const isTemplate = isCredentialTemplate(secret);
  const address = addressProblem(fields, isTemplate);
  if (address !== undefined) {
    return address;
  }
  if (isTemplate && !hasCredentials(secret) && fields.useAzureWorkloadIdentity !== 'true') {
    return incomplete(isForSsh(fields) ? 'sshPrivateKey' : 'password', 'is a template of credentials and holds none');
  }
  const template = hasCredentials(secret)
    ? undefined
    : others.find((one) => isCredentialTemplate(one) && isForRepository(one, fields.url ?? ''));
  const given = template === undefined ? fields : decodeSecret(template);
  if (isForSsh(fields) && !given.sshPrivateKey) {
    const from = template === undefined ? '' : `, nor has the template ${template.metadata.name}`;
    return incomplete('sshPrivateKey', `has an address for SSH and no sshPrivateKey${from}`);
  }
  // What is wrong in a template is said of the template.
  return template === undefined ? credentialProblem(fields) : undefined;
}

/** Argo CD's own rule for addresses of SSH (`IsSSHURL`). */
const sshAddress = /^(ssh:\/\/)?([^/:]*?)@[^@]+$/;
const isForSsh = ({ type = '', url = '' }: TextFields) =>
  (type === '' || type === 'git') && (sshAddress.test(url) || url.startsWith('ssh://'));

function addressProblem(fields: TextFields, isTemplate: boolean): RepositoryProblem | undefined {
  const { url = '', type = '' } = fields;
  if (url.trim() === '') {
    return invalid('url', 'has no url');
  }
  const isWeb = /^https?:\/\//.test(url) && (URL.parse(url)?.hostname ?? '') !== '';
  const isOci = /^oci:\/\/[^/\s]+/.test(url);
  const isAll = isTemplate && /^https?:\/\/$/.test(url);
  switch (type) {
    case '':
    case 'git':
      return isWeb || isAll || isForSsh(fields) || /^(file:\/\/|git:\/\/|\/)/.test(url)
        ? undefined
        : invalid('url', 'has a url that is no address of a Git repository');
    case 'helm':
      return isWeb || isAll || isOci || (fields.enableOCI === 'true' && /^[^\s:/]+(:\d+)?(\/\S*)?$/.test(url))
        ? undefined
        : invalid('url', 'has a url that is no address of a Helm repository; one of OCI needs enableOCI: "true"');
    case 'oci':
      return isOci ? undefined : invalid('url', 'has a url that does not begin with oci://');
    default:
      return invalid('type', `has the type ${JSON.stringify(type)}, which Argo CD does not know`);
  }
}

function credentialProblem(fields: TextFields): RepositoryProblem | undefined {
  const { username, password, bearerToken, sshPrivateKey = '', gcpServiceAccountKey = '' } = fields;
  const halves = [
    ['tlsClientCertData', 'tlsClientCertKey'],
    ['githubAppID', 'githubAppPrivateKey'],
  ] as const;
  for (const pair of halves) {
    const missing = pair.find((name) => !fields[name]);
    const there = pair.find((name) => fields[name]);
    if (missing !== undefined && there !== undefined) {
      return incomplete(missing, `has ${there} and no ${missing}`);
    }
  }
  if (username && !password && !bearerToken && !sshPrivateKey && !fields.githubAppPrivateKey) {
    return incomplete('password', 'has a username and no password');
  }
  if (sshPrivateKey !== '') {
    return sshKeyProblem(sshPrivateKey);
  }
  if (gcpServiceAccountKey !== '' && !isJson(gcpServiceAccountKey)) {
    return invalid('gcpServiceAccountKey', 'has a gcpServiceAccountKey that is not JSON');
  }
  return undefined;
}

function sshKeyProblem(key: string): RepositoryProblem | undefined {
  const field = 'sshPrivateKey';
  const locked = invalid(field, 'has an sshPrivateKey with a passphrase, which nobody gives to Argo CD');
  const [, kind, body = ''] =
    /-----BEGIN ([A-Z ]*PRIVATE KEY)-----([\s\S]+?)-----END \1-----/.exec(key) ?? ([] as string[]);
  if (kind === undefined) {
    return invalid(field, 'has an sshPrivateKey that is no private key in PEM');
  }
  if (kind === 'OPENSSH PRIVATE KEY') {
    // openssh-key-v1: a magic of 15 bytes, then the name of the cipher after its length.
    const bytes = Buffer.from(body.replaceAll(/\s/g, ''), 'base64');
    const isKey = bytes.subarray(0, 15).toString('latin1') === 'openssh-key-v1\0' && bytes.length > 23;
    const cipher = isKey ? bytes.subarray(19, 19 + bytes.readUInt32BE(15)).toString('latin1') : '';
    return isKey ? (cipher === 'none' ? undefined : locked) : invalid(field, 'has an sshPrivateKey that is cut off');
  }
  if (kind.startsWith('ENCRYPTED') || body.includes('ENCRYPTED')) {
    return locked;
  }
  try {
    createPrivateKey(key);
    return undefined;
  } catch {
    return invalid(field, 'has an sshPrivateKey that cannot be read');
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
