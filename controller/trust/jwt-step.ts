import { createPublicKey } from 'node:crypto';
import { rfc3339, type Secret } from '../../lib/kube/index.ts';
import { generateJwtKey, lifetimes, PkiError, parsePrivateKey, renewalTime, secretText } from '../../lib/pki/index.ts';
import { failed, hubNames, isOurs, keys, type StepReport, succeeded } from '../hub/index.ts';
import { currentSecret, rotationRequest, writeSecret } from './shared-secrets.ts';
import type { TrustDeps, TrustScope } from './trust-deps.ts';

/** Lifetime of the principal's tokens, in milliseconds. */
const tokenLifeMs = 24 * 3_600_000;
const formerField = 'jwt.previous.pub';

/**
 * Makes the key that signs the principal's tokens. A Secret of the user is used as it is. A key of this controller is
 * renewed like an authority. The former public key stays until every token that it verifies has expired.
 */
export function ensureTokenKey(deps: TrustDeps, scope: TrustScope): Promise<StepReport> {
  return deps.mutex.run(scope.namespace, () => makeOrKeep(deps, scope));
}

async function makeOrKeep(deps: TrustDeps, scope: TrustScope): Promise<StepReport> {
  const { now, namespace } = scope;
  const result = succeeded('JWT secret created successfully');
  const live = await currentSecret(deps, scope, hubNames.jwt);
  const what = `Secret ${namespace}/${hubNames.jwt}`;
  if (live && !isOurs(live)) {
    const supplied = secretText(live.data, 'jwt.key');
    if (!supplied) {
      return { result: failed(`${what} has no key jwt.key`) };
    }
    parsePrivateKey(supplied, `${what}, key jwt.key`);
    return { result };
  }
  const key = usableKey(live);
  const since = sinceOf(live, now);
  const renewal = renewalTime({ notBefore: since, notAfter: new Date(since.getTime() + lifetimes.authorityMs) });
  if (!key || renewal <= now || rotationRequest(live).pending) {
    const former = key ? createPublicKey(parsePrivateKey(key, what)) : undefined;
    const publicKey = former?.export({ type: 'spki', format: 'pem' }).toString();
    await writeKeys(deps, scope, live, { key: await generateJwtKey(), since: now, former: publicKey });
    deps.logger.info({ namespace, secret: hubNames.jwt }, 'made a key for tokens');
    return { result, renewAt: now.getTime() + tokenLifeMs };
  }
  const expired = since.getTime() + tokenLifeMs;
  const hasFormer = live?.data?.[formerField] !== undefined;
  if (hasFormer && expired <= now.getTime()) {
    await writeKeys(deps, scope, live, { key, since, former: undefined });
  }
  return { result, renewAt: hasFormer ? Math.max(expired, now.getTime()) : renewal.getTime() };
}

async function writeKeys(
  deps: TrustDeps,
  scope: TrustScope,
  live: Secret | undefined,
  { key, since, former }: { readonly key: string; readonly since: Date; readonly former: string | undefined },
): Promise<void> {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const data = { 'jwt.key': encode(key), ...(former !== undefined && { [formerField]: encode(former) }) };
  const annotations = { ...rotationRequest(live).annotations, [keys.since]: rfc3339(since) };
  await writeSecret(deps, scope, hubNames.jwt, { type: 'Opaque', data }, annotations);
}

/** The key in a Secret of this controller; undefined when it is missing or damaged. */
function usableKey(secret: Secret | undefined): string | undefined {
  const key = secretText(secret?.data, 'jwt.key');
  try {
    return key && parsePrivateKey(key, 'jwt.key') && key;
  } catch (error) {
    if (error instanceof PkiError) {
      return undefined;
    }
    throw error;
  }
}

/** Since when a key is in use. Secrets of earlier versions lack the annotation: their creation counts. */
function sinceOf(secret: Secret | undefined, now: Date): Date {
  const { annotations, creationTimestamp } = secret?.metadata ?? {};
  const time = new Date(annotations?.[keys.since] ?? creationTimestamp ?? '');
  return Number.isNaN(time.getTime()) ? now : time;
}
