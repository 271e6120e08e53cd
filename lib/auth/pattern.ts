import { RE2JS } from 're2js';
import { AuthError } from './errors.ts';

/** Longest text that is searched, in UTF-16 units. Agent names, subjects and URIs are far shorter. */
const longestText = 4_096;

/**
 * A regular expression in Go's syntax (RE2), as flags of argocd-agent have it. A search takes time linear in the text,
 * whatever the expression: the text comes from strangers, and no operator's expression may let them stop the program. A
 * text of more than 4,096 characters matches nothing.
 */
export class GoExpression {
  readonly source: string;
  readonly #compiled: RE2JS;

  /** @throws Error that names the position, for an expression that Go does not compile either */
  constructor(source: string) {
    this.source = source;
    this.#compiled = RE2JS.compile(source);
  }

  /** Number of capturing groups. */
  get groups(): number {
    return this.#compiled.groupCount();
  }

  /** Whether it matches anywhere in the text. */
  matches(text: string): boolean {
    return text.length <= longestText && this.#compiled.matcher(text).find();
  }

  /** The text of the first group in the first match; undefined without a match. */
  firstGroup(text: string): string | undefined {
    if (text.length > longestText) {
      return undefined;
    }
    const matcher = this.#compiled.matcher(text);
    return matcher.find() ? (matcher.group(1) ?? undefined) : undefined;
  }

  toString(): string {
    return this.source;
  }
}

/**
 * Compiles an expression that captures a name.
 *
 * @throws AuthError `configuration` when it does not compile or has no group to capture a name
 */
export function compilePattern(source: string): GoExpression {
  let pattern: GoExpression;
  try {
    pattern = new GoExpression(source);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new AuthError('configuration', `"${source}" is not a regular expression of Go (RE2): ${why}`, { cause });
  }
  if (pattern.groups === 0) {
    throw new AuthError('configuration', `"${source}" has no group that captures the agent's name, such as ([^,]+)`);
  }
  return pattern;
}
