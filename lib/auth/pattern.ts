import { AuthError } from './errors.ts';

const classes: Readonly<Record<string, string>> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  digit: '0-9',
  lower: 'a-z',
  upper: 'A-Z',
  word: 'A-Za-z0-9_',
  xdigit: 'A-Fa-f0-9',
};

/**
 * A regular expression written for Go (RE2), as flags of argocd-agent hold them: flags at the start, named groups, `\A`,
 * `\z` and POSIX classes are translated; the rest is the same in both languages.
 *
 * @throws SyntaxError when it does not compile
 */
export function goExpression(source: string): RegExp {
  const { body, flags } = translate(source);
  return new RegExp(body, flags);
}

/**
 * Compiles a {@link goExpression} that captures a name.
 *
 * @throws AuthError `configuration` when it does not compile or has no group to capture a name
 */
export function compilePattern(source: string): RegExp {
  const { body, flags } = translate(source);
  let groups: number;
  let pattern: RegExp;
  try {
    pattern = new RegExp(body, flags);
    groups = (new RegExp(`${body}|`, flags).exec('')?.length ?? 1) - 1;
  } catch (cause) {
    throw new AuthError('configuration', `"${source}" is not a regular expression that can be used here`, { cause });
  }
  if (groups === 0) {
    throw new AuthError('configuration', `"${source}" has no group that captures the agent's name, such as ([^,]+)`);
  }
  return pattern;
}

function translate(source: string): { body: string; flags: string } {
  const [, flags = '', body = ''] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(source) ?? [];
  const translated = body
    .replaceAll('(?P<', '(?<')
    .replace(/\\A/g, '^')
    .replace(/\\z/g, '$')
    .replace(/\[:(\w+):\]/g, (whole, name: string) => classes[name] ?? whole);
  return { body: translated, flags };
}
