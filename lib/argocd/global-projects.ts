import { parse } from 'yaml';
import { z } from 'zod';

/** One of Argo CD's `globalProjects`: whom the project of this name is a global project for. */
export interface GlobalProject {
  readonly projectName: string;
  readonly labelSelector: LabelSelector;
}

/** A label selector as Kubernetes objects have it. */
interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly LabelRequirement[];
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/**
 * Reads `globalProjects` of ConfigMap `argocd-cm`.
 * @throws Error for what Argo CD cannot read either: it has no global projects then
 */
export function parseGlobalProjects(text: string | undefined): GlobalProject[] {
  // Argo CD reads YAML 1.1.
  return text === undefined || text === '' ? [] : globalProjects.parse(parse(text, { version: '1.1' }) ?? []);
}

/** As {@link parseGlobalProjects}, and none for what cannot be read. */
export function readableGlobalProjects(text: string | undefined): GlobalProject[] {
  try {
    return parseGlobalProjects(text);
  } catch {
    return [];
  }
}

/** Go's JSON finds a field whatever the case of its letters. */
const fields = (value: unknown) =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toLowerCase(), item ?? undefined]))
    : (value ?? undefined);

const object = <S extends z.ZodRawShape>(shape: S) => z.preprocess(fields, z.object(shape).optional());
/** Argo CD's YAML makes texts of numbers and booleans where a text is due. */
const text = z
  .union([z.string(), z.number(), z.boolean()])
  .nullish()
  .transform((value) => String(value ?? ''));
const list = <S extends z.ZodType>(item: S) =>
  z.preprocess((value) => value ?? [], z.array(item)) as unknown as z.ZodType<z.output<S>[]>;

const requirement = object({ key: text, operator: text, values: list(text) }).transform((one) => ({
  key: one?.key ?? '',
  operator: one?.operator ?? '',
  values: (one?.values ?? []).map((value) => value ?? ''),
}));

const selector = object({
  matchlabels: z.preprocess(
    (value) => value ?? {},
    z.record(
      z.string(),
      z.preprocess((one) => one ?? '', text),
    ),
  ),
  matchexpressions: list(requirement),
}).transform(
  (one): LabelSelector => ({
    matchLabels: Object.fromEntries(Object.entries(one?.matchlabels ?? {}).map(([key, value]) => [key, value ?? ''])),
    matchExpressions: one?.matchexpressions ?? [],
  }),
);

const globalProjects = list(
  object({ projectname: text, labelselector: selector }).transform((one) => ({
    projectName: one?.projectname ?? '',
    labelSelector: one?.labelselector ?? { matchLabels: {}, matchExpressions: [] },
  })),
);

/**
 * Whether labels match a selector, by the rules of Kubernetes (`LabelSelectorAsSelector`). An empty selector matches all.
 * @returns undefined when the selector is invalid
 */
export function matchesSelector(
  { matchLabels, matchExpressions }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean | undefined {
  const requirements = [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...matchExpressions,
  ];
  return requirements.every(isValid) ? requirements.every((one) => isMet(one, labels)) : undefined;
}

function isMet({ key, operator, values }: LabelRequirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}

const name = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function isValid({ key, operator, values }: LabelRequirement): boolean {
  const [last = '', prefix, ...more] = key.split('/').reverse();
  const isKey =
    last.length <= 63 &&
    name.test(last) &&
    more.length === 0 &&
    (prefix === undefined || (prefix.length <= 253 && subdomain.test(prefix)));
  const areValues = values.every((value) => value === '' || (value.length <= 63 && name.test(value)));
  const isCount = operator === 'In' || operator === 'NotIn' ? values.length > 0 : values.length === 0;
  return isKey && areValues && isCount && ['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(operator);
}
