import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { secrets } from '../../lib/kube/index.ts';
import { boolFlag, FatalError, stringFlag } from '../../lib/ops/index.ts';
import { generateJwtKey, secretText } from '../../lib/pki/index.ts';
import { asFatal, names, putSecret } from '../authority.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { formatted, mailTime } from '../output.ts';
import { confirmed } from '../prompt.ts';

/** The commands about the key that signs the principal's tokens. */
export const jwtCommands = [
  ctlCommand({
    name: 'jwt create-key',
    summary: 'Make the key that signs tokens',
    flags: { upsert: boolFlag({ usage: 'replace a key that exists', short: 'u' }) },
    run: async ({ upsert }, ctl) => {
      if ((await keySecret(ctl)) !== undefined && !upsert) {
        throw new FatalError('JWT secret already exists. Use --upsert to recreate it.');
      }
      ctl.print('Generating JWT signing key...\n');
      const key = Buffer.from(await generateJwtKey(4096)).toString('base64');
      const { namespace } = ctl.principal();
      const metadata = { namespace, name: names.jwt };
      const done = await putSecret(ctl.principal(), { metadata, type: 'Opaque', data: { 'jwt.key': key } }, ctl).catch(
        asFatal('Could not write JWT secret'),
      );
      const what = done === 'created' ? 'created and stored' : 'updated';
      ctl.print(`Success. JWT signing key ${what} in secret ${namespace}/${names.jwt}\n`);
    },
  }),
  ctlCommand({
    name: 'jwt inspect-key',
    summary: 'Show the key that signs tokens',
    flags: { output: stringFlag({ usage: 'format: json, yaml or text', default: 'json', short: 'o' }) },
    run: async ({ output }, ctl) => {
      const secret = await keySecret(ctl);
      const where = `${ctl.targets.principal.namespace}/${names.jwt}`;
      if (secret === undefined) {
        throw new FatalError(
          `Could not read JWT signing key from secret: could not read JWT secret ${where}: it does not exist; run argocd-agentctl jwt create-key`,
        );
      }
      const key = signingKey(secretText(secret.data, 'jwt.key'), where);
      if (key.asymmetricKeyType !== 'rsa') {
        throw new FatalError('JWT signing key is not an RSA private key');
      }
      const publicKey = createPublicKey(key);
      const shown = {
        keyType: 'RSA',
        keyLength: publicKey.asymmetricKeyDetails?.modulusLength ?? 0,
        created: mailTime(new Date(secret.metadata.creationTimestamp ?? 0)),
        sha256: createHash('sha256')
          .update(publicKey.export({ type: 'spki', format: 'der' }))
          .digest('hex'),
      };
      const labels = { keyType: 'Key type', keyLength: 'Key length', created: 'Created', sha256: 'Key fingerprint' };
      ctl.print(formatted(shown, output, labels));
    },
  }),
  ctlCommand({
    name: 'jwt delete-key',
    summary: 'Delete the key that signs tokens',
    flags: { force: boolFlag({ usage: 'do not ask', short: 'f' }) },
    run: async ({ force }, ctl) => {
      const question = 'Are you sure you want to delete the JWT signing key? [y/N]: ';
      if (!force && !(await confirmed(ctl, question))) {
        ctl.print('Aborted.\n');
        return;
      }
      const secret = await keySecret(ctl);
      const { client, namespace } = ctl.principal();
      const where = `${namespace}/${names.jwt}`;
      if (secret === undefined) {
        ctl.print(`JWT secret ${where} does not exist.\n`);
        return;
      }
      await client
        .delete(secrets, { namespace, name: names.jwt }, { uid: secret.metadata.uid, signal: ctl.signal })
        .catch(asFatal('Could not delete JWT secret'));
      ctl.print(`JWT signing key secret ${where} deleted successfully.\n`);
    },
  }),
];

function keySecret({ principal, signal }: Ctl) {
  const { client, namespace } = principal();
  return client.get(secrets, { namespace, name: names.jwt }, signal).catch(asFatal('Error getting JWT secret'));
}

/** @throws FatalError for what is no PKCS#8 key, which the original's principal does not read */
export function signingKey(pem: string | undefined, where: string) {
  if (!pem) {
    throw new FatalError(`Could not read JWT signing key from secret: JWT signing key is missing in secret ${where}`);
  }
  try {
    if (!pem.includes('-----BEGIN PRIVATE KEY-----')) {
      throw new Error('it is not PKCS#8 in PEM');
    }
    return createPrivateKey(pem);
  } catch (cause) {
    throw new FatalError(`could not parse JWT signing key from secret ${where}: ${(cause as Error).message}`, {
      cause,
    });
  }
}
