import type { RedisLink } from './link.ts';

/**
 * The value of a key of Argo CD's cache that begins with `prefix` there (`redis.key.prefix` of Argo CD 3.6, for values, not for channels).
 * One without it counts if there is no other: an Argo CD before 3.6 puts none, whatever its parameters say.
 */
export async function prefixedValue(
  link: Pick<RedisLink, 'get'>,
  prefix: string,
  key: string,
): Promise<Buffer | undefined> {
  const value = await link.get(`${prefix}${key}`);
  return value === undefined && prefix !== '' ? link.get(key) : value;
}
