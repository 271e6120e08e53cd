import { createPublicKey } from 'node:crypto';
import { rfc3339, type Secret } from '../../lib/kube/index.ts';
import { generateJwtKey, lifetimes, parsePrivateKey, renewalTime, textOf } from '../../lib/pki/index.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from '../fleet/steps.ts';
import { isOurs } from '../hub/applier.ts';
import { hubNames, keys } from '../hub/names.ts';
import { currentSecret, nameOf, rotationRequest, writeSecret } from './shared-secrets.ts';

/** How long tokens live that the principal has signed. */
const tokenLifeMs = 24 * 3_600_000;
const formerField = 'jwt.previous.pub';

/**
 * The key that signs the principal's tokens. An existing Secret is used as it is; a key of ours is renewed like an
 * authority, and the former one's public half stays beside the new key until every token of it has expired.
 */
export const jwtStep: Step = {
  condition: 'JWTSecretReady',
  purpose: 'create JWT secret',
  run: (context) => context.inTurn(context.namespace, () => ensureKey(context)),
};

async function ensureKey(context: StepContext): Promise<StepResult> {
  const { now } = context;
  const done = succeeded('JWT secret created successfully');
  const live = await currentSecret(context, hubNames.jwt);
  const what = `Secret ${nameOf(context, hubNames.jwt)}`;
  const key = textOf(live?.data, 'jwt.key');
  if (live && !isOurs(live)) {
    if (!key) {
      return failed(`${what} has no key jwt.key`);
    }
    parsePrivateKey(key, `${what}, key jwt.key`);
    return done;
  }
  const since = sinceOf(live, now);
  const renewal = renewalTime({ notBefore: since, notAfter: new Date(since.getTime() + lifetimes.authorityMs) });
  if (!key || renewal <= now || rotationRequest(live).pending) {
    const former = key ? createPublicKey(parsePrivateKey(key, `${what}, key jwt.key`)) : undefined;
    const publicKey = former?.export({ type: 'spki', format: 'pem' }).toString();
    await write(context, live, now, await generateJwtKey(), publicKey);
    context.logger.info({ namespace: context.namespace, secret: hubNames.jwt }, 'made a key for tokens');
    context.renewAt = Math.min(context.renewAt, now.getTime() + tokenLifeMs);
    return done;
  }
  parsePrivateKey(key, `${what}, key jwt.key`);
  const expired = since.getTime() + tokenLifeMs;
  const hasFormer = live?.data?.[formerField] !== undefined;
  if (hasFormer && expired <= now.getTime()) {
    await write(context, live, since, key, undefined);
  }
  context.renewAt = Math.min(context.renewAt, hasFormer ? Math.max(expired, now.getTime()) : renewal.getTime());
  return done;
}

async function write(
  context: StepContext,
  live: Secret | undefined,
  since: Date,
  key: string,
  former: string | undefined,
): Promise<void> {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const data = { 'jwt.key': encode(key), ...(former !== undefined && { [formerField]: encode(former) }) };
  const annotations = { ...rotationRequest(live).annotations, [keys.since]: rfc3339(since) };
  await writeSecret(context, hubNames.jwt, 'Opaque', data, annotations);
}

/** Since when a key is in use; one of an earlier version since its Secret was made. */
function sinceOf(secret: Secret | undefined, now: Date): Date {
  const { annotations, creationTimestamp } = secret?.metadata ?? {};
  const time = new Date(annotations?.[keys.since] ?? creationTimestamp ?? '');
  return Number.isNaN(time.getTime()) ? now : time;
}
