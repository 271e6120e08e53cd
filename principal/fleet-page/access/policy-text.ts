/** A line of Argo CD's policy: a right, or a subject's membership of a role. */
export type PolicyLine =
  | {
      readonly kind: 'right';
      readonly subject: string;
      readonly resource: string;
      readonly action: string;
      readonly object: string;
      readonly effect: string;
    }
  | { readonly kind: 'member'; readonly subject: string; readonly role: string };

const longestPolicy = 1024 * 1024;

/**
 * Reads the lines of a policy as Argo CD does: CSV, one line each, spaces before a field left out, `#` begins a comment.
 * @throws Error that names the line, for any line that is not understood
 */
export function parsePolicy(text: string): PolicyLine[] {
  if (text.length > longestPolicy) {
    throw new Error(`the policy has more than ${longestPolicy} characters`);
  }
  return text.split('\n').flatMap((raw, index): PolicyLine[] => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) {
      return [];
    }
    const fields = fieldsOf(line) ?? [];
    const [kind, first = '', second = '', action = '', object = '', effect = ''] = fields;
    const count = fields.length;
    if (kind === 'p' && count === 6) {
      return [{ kind: 'right', subject: first, resource: second, action, object, effect }];
    }
    if (kind === 'g' && count === 3) {
      return [{ kind: 'member', subject: first, role: second }];
    }
    throw new Error(`line ${index + 1} of the policy is not understood`);
  });
}

/** The fields of one line of CSV; undefined when its quotes are wrong. No two parts of the expression take the same character. */
function fieldsOf(line: string): string[] | undefined {
  const fields: string[] = [];
  const field = /\s*(?:"((?:[^"]|"")*)"|([^",\s][^",]*)?)(,|$)/y;
  for (;;) {
    const [, quoted, plain, end] = field.exec(line) ?? [];
    if (end === undefined) {
      return undefined;
    }
    fields.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === '') {
      return fields;
    }
  }
}
