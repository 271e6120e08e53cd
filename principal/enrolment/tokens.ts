import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { backoffDelay, isDnsLabel, sleep, wellKnown } from '../../lib/base/index.ts';
import { isAlreadyExists, isConflict, type KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';

/** Secret on the hub with a record of each token, by the agent's name. The principal's rights name it. */
export const tokensSecret = 'argocd-agent-enrolment-tokens';

const recordSchema = z.object({
  /** SHA-256 of the token, hex. */
  hash: z.string(),
  expires: z.iso.datetime(),
  /** SHA-256 of the public key that has used the token, hex: no other key may. Absent until it is used. */
  key: z.string().optional(),
  /** The certificate that this key has got, PEM. */
  certificate: z.string().optional(),
});

/** What the hub knows of a token. The token itself is only in the agent's manifest. */
export type TokenRecord = z.infer<typeof recordSchema>;

/** Conflicts with others who write the Secret at the same time. */
const attempts = 5;
const maxCharacters = 128;

/** Makes a token for an agent: its name, a dot and 256 random bits. */
export function newToken(agent: string): string {
  return `${agent}.${randomBytes(32).toString('base64url')}`;
}

/** The agent that a token is for; undefined for a text that is no token. */
export function agentOfToken(token: string): string | undefined {
  const agent = token.slice(0, Math.max(token.indexOf('.'), 0));
  return token.length <= maxCharacters && isDnsLabel(agent) ? agent : undefined;
}

/** SHA-256 in hex. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** Whether a record is of this token; takes the same time for every token. */
export function isRecordOf({ hash }: TokenRecord, token: string): boolean {
  const [known, given] = [Buffer.from(hash), Buffer.from(sha256(token))];
  return known.length === given.length && timingSafeEqual(known, given);
}

/** The record of an agent's token in the Secret; undefined when there is none or it is damaged. */
export function recordIn(secret: Secret | undefined, agent: string): TokenRecord | undefined {
  try {
    return recordSchema.safeParse(JSON.parse(secretText(secret?.data, agent) ?? '')).data;
  } catch {
    return undefined; // no JSON: as if there were none
  }
}

type Client = Pick<KubeClient, 'get' | 'create' | 'mergePatch'>;

/** Records a token, in place of an earlier one of the agent. Records of tokens that have expired are removed. */
export async function storeToken(
  client: Client,
  namespace: string,
  entry: { readonly agent: string; readonly token: string; readonly expires: Date; readonly signal: AbortSignal },
): Promise<void> {
  const { agent, token, expires, signal } = entry;
  const record = encode({ hash: sha256(token), expires: expires.toISOString() });
  const key = { namespace, name: tokensSecret };
  const options = { fieldManager: 'argocd-agent-enroll', signal };
  for (let attempt = 1; ; attempt++) {
    try {
      const live = await client.get(secrets, key, signal);
      if (live === undefined) {
        const labels = { [wellKnown.partOfLabel]: 'argocd-agent' };
        await client.create(
          secrets,
          { metadata: { ...key, labels }, type: 'Opaque', data: { [agent]: record } },
          options,
        );
      } else {
        const data = { ...withoutExpired(live), [agent]: record };
        const { resourceVersion } = live.metadata;
        await client.mergePatch(secrets, key, { metadata: { resourceVersion }, data }, options);
      }
      return;
    } catch (error) {
      if (attempt === attempts || !(isConflict(error) || isAlreadyExists(error))) {
        throw error;
      }
      await sleep(backoffDelay(attempt), signal);
    }
  }
}

/** A merge patch of the data that removes what has expired or cannot be read. */
function withoutExpired(secret: Secret): Record<string, null> {
  const now = Date.now();
  const old = Object.keys(secret.data ?? {}).filter(
    (agent) => !(Date.parse(recordIn(secret, agent)?.expires ?? '') > now),
  );
  return Object.fromEntries(old.map((agent) => [agent, null]));
}

/**
 * Replaces the record of an agent's token, unless the Secret has changed meanwhile; undefined removes it.
 * @throws ApiError `isConflict` when it has changed: read it again
 */
export async function putRecord(
  client: Client,
  secret: Secret,
  entry: { readonly agent: string; readonly record: TokenRecord | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const { agent, record, signal } = entry;
  const { namespace, name, uid, resourceVersion } = secret.metadata;
  const patch = { metadata: { uid, resourceVersion }, data: { [agent]: record === undefined ? null : encode(record) } };
  await client.mergePatch(secrets, { ...(namespace && { namespace }), name }, patch, {
    fieldManager: 'argocd-agent-principal',
    signal,
  });
}

const encode = (record: TokenRecord) => Buffer.from(JSON.stringify(record)).toString('base64');
