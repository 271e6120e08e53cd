/** A token as it is on the wire, taken apart. */
export interface Token {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Takes a token apart without looking at its signature. */
export function readToken(token: string): Token {
  const [header = '', claims = ''] = token.split('.');
  const json = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  return { header: json(header), claims: json(claims) };
}

/**
 * A recorded token moved to another time and agent. Its signature is no longer good, which matters to nobody but a
 * principal: agents of the original read tokens without checking them.
 */
export function movedToken(
  token: string,
  now: Date,
  agent?: { readonly clientID: string; readonly mode: string },
): string {
  const { header, claims } = readToken(token);
  const shift = Math.floor(now.getTime() / 1000) - Number(claims.iat);
  const moved = {
    ...claims,
    ...(agent === undefined ? {} : { sub: JSON.stringify(agent) }),
    exp: Number(claims.exp) + shift,
    nbf: Number(claims.nbf) + shift,
    iat: Number(claims.iat) + shift,
  };
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return [part(header), part(moved), token.split('.')[2]].join('.');
}
