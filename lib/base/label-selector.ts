import { isLabelValue } from './label.ts';

/** Whether labels are selected. */
export type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

const key = `(?:[A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?`;
const value = `(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?`;
const isIn = new RegExp(String.raw`^(${key})\s+(in|notin)\s*\(([^()]*)\)$`);
const isEqualTo = new RegExp(String.raw`^(${key})\s*(==|=|!=|>|<)\s*(${value})$`);
const isThere = new RegExp(String.raw`^(!?)\s*(${key})$`);

/**
 * The test that a label selector stands for, in the text form of Kubernetes: `a=b`, `a==b`, `a!=b`, `a in (b,c)`,
 * `a notin (b,c)`, `a`, `!a`, `a>1`, `a<1`, joined by commas. As there, `!=` and `notin` select what lacks the label. The
 * empty text selects everything.
 * @throws SyntaxError which names the part that is no selector
 */
export function labelSelector(text: string): LabelTest {
  const tests = requirementsOf(text).map(requirement);
  return (labels) => tests.every((test) => test(labels));
}

/** Splits at the commas that are not in parentheses. */
function requirementsOf(text: string): string[] {
  return text.trim() === '' ? [] : text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

function requirement(text: string): LabelTest {
  const [, set = '', operator, list = ''] = isIn.exec(text) ?? [];
  if (operator !== undefined) {
    const values = list.split(',').map((one) => one.trim());
    if (!values.every((one) => isLabelValue(one))) {
      throw new SyntaxError(`"${text}" is no requirement of a label selector`);
    }
    return (labels) => {
      const own = labelOf(labels, set);
      return operator === 'in' ? own !== undefined && values.includes(own) : own === undefined || !values.includes(own);
    };
  }
  const [, label = '', comparison, wanted = ''] = isEqualTo.exec(text) ?? [];
  if (comparison !== undefined) {
    return comparisonOf(text, label, comparison, wanted);
  }
  const [, not, name] = isThere.exec(text) ?? [];
  if (name === undefined) {
    throw new SyntaxError(`"${text}" is no requirement of a label selector`);
  }
  return (labels) => (labelOf(labels, name) === undefined) === (not === '!');
}

function comparisonOf(text: string, label: string, comparison: string, wanted: string): LabelTest {
  switch (comparison) {
    case '!=':
      return (labels) => labelOf(labels, label) !== wanted;
    case '>':
    case '<': {
      if (!/^-?\d+$/.test(wanted)) {
        throw new SyntaxError(`"${text}" compares with what is no integer`);
      }
      const bound = BigInt(wanted);
      return (labels) => {
        const own = labelOf(labels, label) ?? '';
        return /^-?\d+$/.test(own) && (comparison === '>' ? BigInt(own) > bound : BigInt(own) < bound);
      };
    }
    default:
      return (labels) => labelOf(labels, label) === wanted;
  }
}

function labelOf(labels: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}
