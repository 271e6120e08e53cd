/** Keys whose values are credentials, by their last word: `webhook.github.secret`, `admin.password`, `VAULT_TOKEN`. */
const credentialKey =
  /(^|[._-])(tls\.key|password(mtime)?|passwd|secret(_?key)?|client_?secret|(access_?|api_?)?tokens?|(ssh_?)?private_?key|credentials?)$/i;

/** Values that are credentials, whatever their key. */
const credentialValues: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]*PRIVATE KEY/, 'a private key'],
  [/:\/\/[^\s/:@]*:[^\s/@$][^\s/@]*@/, 'an address with a password'],
  [
    /\b(ghp_|gho_|ghs_|github_pat_|glpat-)\w{16}|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10}/,
    'a token',
  ],
];

/** Keys of Argo CD whose values are text with credentials in it, unless they refer to a Secret with `$`. */
const innerCredentials: Readonly<Record<string, RegExp>> = {
  'dex.config': /^\s*-?\s*["']?(client_?secret|bindPW|password)["']?\s*:\s*["']?[^\s"'$#]/im,
  'oidc.config': /^\s*["']?client_?secret["']?\s*:\s*["']?[^\s"'$#]/im,
  'otlp.headers': /authorization|token|key|secret/i,
};

/**
 * Why a value must not be in a ConfigMap, which more people may read than Secrets; undefined when nothing looks like a
 * credential. The text never contains the value.
 */
export function credentialIn(key: string, value: string): string | undefined {
  const where = 'must not be in a ConfigMap; put it into a Secret on the clusters';
  if (credentialKey.test(key) && value !== '' && !value.startsWith('$')) {
    return `looks like a credential, which ${where}`;
  }
  const [, found] = credentialValues.find(([form]) => form.test(value)) ?? [];
  if (found !== undefined) {
    return `contains ${found}, which ${where}`;
  }
  return innerCredentials[key]?.test(value) ? `contains a credential, which ${where}` : undefined;
}
