import { generateJwtKey, parsePrivateKey, textOf } from '../lib/pki/index.ts';
import { isOurs } from './applier.ts';
import { hubNames } from './names.ts';
import { currentSecret, nameOf, writeSecret } from './shared-secrets.ts';
import { failed, type Step, succeeded } from './steps.ts';

/** Signs the principal's tokens. An existing Secret is used as it is. */
export const jwtStep: Step = {
  condition: 'JWTSecretReady',
  purpose: 'create JWT secret',
  run: (context) =>
    context.inTurn(context.namespace, async () => {
      const live = await currentSecret(context, hubNames.jwt);
      if (live === undefined || (isOurs(live) && !live.data?.['jwt.key'])) {
        const data = { 'jwt.key': Buffer.from(await generateJwtKey()).toString('base64') };
        await writeSecret(context, hubNames.jwt, 'Opaque', data);
        return succeeded('JWT secret created successfully');
      }
      const key = textOf(live.data, 'jwt.key');
      if (!key) return failed(`Secret ${nameOf(context, hubNames.jwt)} has no key jwt.key`);
      parsePrivateKey(key, `Secret ${nameOf(context, hubNames.jwt)}, key jwt.key`);
      return succeeded('JWT secret created successfully');
    }),
};
