import { AuthError } from './errors.ts';
import { compilePattern, type GoExpression } from './pattern.ts';

/** The principal's authentication method: its flag `--auth`, parsed. */
export type AuthChoice =
  | {
      readonly method: 'mtls';
      /** The part of the client certificate that names the agent. */
      readonly source: 'subject' | 'uri';
      /** Its first group is the agent's name. */
      readonly pattern: GoExpression;
    }
  | { readonly method: 'userpass' /** Path of the user database. */; readonly file: string }
  | {
      readonly method: 'header';
      /** Name of a request header, lower case. */
      readonly header: string;
      /** Its first group is the agent's name. */
      readonly pattern: GoExpression;
    };

/**
 * Parses `--auth`: `mtls:subject:<re>`, `mtls:uri:<re>`, `mtls:<re>`, `userpass:<file>` or `header:<name>:<re>`.
 *
 * @throws AuthError `configuration`; its message begins like argocd-agent's
 */
export function parseAuth(text: string): AuthChoice {
  const [method, config] = splitOnce(text);
  if (config === undefined) {
    throw new AuthError('configuration', `invalid auth string "${text}": expected mtls:…, userpass:… or header:…`);
  }
  switch (method) {
    case 'mtls':
      return parseMtls(config);
    case 'userpass':
      if (config === '') {
        throw new AuthError('configuration', 'userpass needs the path of a file: userpass:<file>');
      }
      return { method: 'userpass', file: config };
    case 'header':
      return parseHeader(config);
    default:
      throw new AuthError('configuration', `unknown auth method: ${method}`);
  }
}

/**
 * Checks that an authentication method fits how the principal listens: certificates need TLS, and a header can be trusted
 * only behind a proxy that terminates TLS.
 *
 * @throws AuthError `configuration`
 */
export function checkPairing(choice: AuthChoice, listener: { readonly plaintext: boolean }): void {
  if (choice.method === 'mtls' && listener.plaintext) {
    throw new AuthError('configuration', 'mtls authentication cannot be used with --insecure-plaintext');
  }
  if (choice.method === 'header' && !listener.plaintext) {
    throw new AuthError(
      'configuration',
      'header authentication needs --insecure-plaintext, behind a proxy that ends TLS',
    );
  }
}

function parseMtls(config: string): AuthChoice {
  const prefix = /^(subject|uri):/.exec(config);
  const source = prefix?.[1] === 'uri' ? 'uri' : 'subject';
  return { method: 'mtls', source, pattern: compilePattern(config.slice(prefix?.[0].length ?? 0)) };
}

function parseHeader(config: string): AuthChoice {
  const [name = '', pattern] = splitOnce(config).map((part) => part?.trim());
  if (!name || !pattern) {
    throw new AuthError('configuration', 'header authentication needs a header and an expression: header:<name>:<re>');
  }
  return { method: 'header', header: name.toLowerCase(), pattern: compilePattern(pattern) };
}

function splitOnce(text: string): [string, string | undefined] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
}
