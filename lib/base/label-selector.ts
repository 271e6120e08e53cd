import { isLabelValue } from './label.ts';

/** Whether labels are selected. */
export type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

/** Labels that are selected, as close to the given ones as can be; undefined when no value of a label would do. */
export type LabelCompletion = (
  labels: Readonly<Record<string, string>>,
) => Readonly<Record<string, string>> | undefined;

/** What a selector asks of one label; undefined stands for its absence. */
interface Requirement {
  readonly key: string;
  readonly admits: (value: string | undefined) => boolean;
  /** Values of which one is admitted, if any is. */
  readonly examples: readonly (string | undefined)[];
}

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
  const all = requirementsOf(text);
  return (labels) => all.every(({ key, admits }) => admits(labelOf(labels, key)));
}

/**
 * How labels have to change to be selected by a {@link labelSelector}: those about which it says nothing, and those that it admits,
 * stay.
 * @throws SyntaxError which names the part that is no selector
 */
export function labelCompletion(text: string): LabelCompletion {
  const all = requirementsOf(text);
  const keys = new Set(all.map(({ key }) => key));
  return (labels) => {
    const completed = new Map(Object.entries(labels));
    for (const key of keys) {
      const asked = all.filter((one) => one.key === key);
      const values = [completed.get(key), ...asked.flatMap(({ examples }) => examples)];
      const index = values.findIndex((value) => asked.every(({ admits }) => admits(value)));
      const value = values[index];
      if (index === -1) {
        return undefined;
      }
      if (value === undefined) {
        completed.delete(key);
      } else {
        completed.set(key, value);
      }
    }
    return Object.fromEntries(completed);
  };
}

/** Splits at the commas that are not in parentheses. */
function requirementsOf(text: string): Requirement[] {
  const parts = text.trim() === '' ? [] : text.split(/,(?![^(]*\))/).map((part) => part.trim());
  return parts.map(requirement);
}

function requirement(text: string): Requirement {
  const [, set = '', operator, list = ''] = isIn.exec(text) ?? [];
  if (operator !== undefined) {
    const values = list.split(',').map((one) => one.trim());
    if (!values.every((one) => isLabelValue(one))) {
      throw new SyntaxError(`"${text}" is no requirement of a label selector`);
    }
    return operator === 'in'
      ? { key: set, admits: (own) => own !== undefined && values.includes(own), examples: values }
      : { key: set, admits: (own) => own === undefined || !values.includes(own), examples: [undefined] };
  }
  const [, label = '', comparison, wanted = ''] = isEqualTo.exec(text) ?? [];
  if (comparison !== undefined) {
    return { key: label, ...comparisonOf(text, comparison, wanted) };
  }
  const [, not, name] = isThere.exec(text) ?? [];
  if (name === undefined) {
    throw new SyntaxError(`"${text}" is no requirement of a label selector`);
  }
  return not === '!'
    ? { key: name, admits: (own) => own === undefined, examples: [undefined] }
    : { key: name, admits: (own) => own !== undefined, examples: ['', 'true'] };
}

function comparisonOf(text: string, comparison: string, wanted: string): Omit<Requirement, 'key'> {
  switch (comparison) {
    case '!=':
      return { admits: (own) => own !== wanted, examples: [undefined] };
    case '>':
    case '<': {
      if (!/^-?\d+$/.test(wanted)) {
        throw new SyntaxError(`"${text}" compares with what is no integer`);
      }
      const bound = BigInt(wanted);
      const example = String(comparison === '>' ? bound + 1n : bound - 1n);
      return {
        admits: (own = '') => /^-?\d+$/.test(own) && (comparison === '>' ? BigInt(own) > bound : BigInt(own) < bound),
        // No label has a negative value.
        examples: isLabelValue(example) ? [example] : [],
      };
    }
    default:
      return { admits: (own) => own === wanted, examples: [wanted] };
  }
}

function labelOf(labels: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}
