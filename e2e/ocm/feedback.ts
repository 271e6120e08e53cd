import type { KubeObject } from '../../lib/kube/index.ts';
import type { FeedbackRule, FeedbackValue } from './types.ts';

const wellKnown: Record<string, Record<string, string>> = {
  Deployment: {
    ReadyReplicas: '.status.readyReplicas',
    Replicas: '.status.replicas',
    AvailableReplicas: '.status.availableReplicas',
  },
  DaemonSet: {
    NumberReady: '.status.numberReady',
    DesiredNumberScheduled: '.status.desiredNumberScheduled',
    NumberAvailable: '.status.numberAvailable',
  },
  Job: {
    JobComplete: '.status.conditions[?(@.type=="Complete")].status',
    JobSucceeded: '.status.succeeded',
  },
  Pod: { PodReady: '.status.conditions[?(@.type=="Ready")].status', PodPhase: '.status.phase' },
};

/**
 * Reads the values that feedback rules ask for. A missing path is left out; an object, a list or a fraction is an
 * error, as is a kind without well-known status.
 */
export function readFeedback(
  object: KubeObject,
  rules: readonly FeedbackRule[],
): { values: FeedbackValue[]; errors: string[] } {
  const values: FeedbackValue[] = [];
  const errors: string[] = [];
  for (const rule of rules) {
    const paths = pathsOf(object, rule);
    if (!paths) {
      errors.push(`kind ${object.kind} has no well-known status`);
    }
    for (const [name, path] of paths ?? []) {
      const value = lookUp(object, path);
      if (value === undefined) {
        continue;
      }
      const fieldValue = fieldValueOf(value);
      if (fieldValue) {
        values.push({ name, fieldValue });
      } else {
        errors.push(`the type of ${path} is not a string, an integer or a boolean`);
      }
    }
  }
  return { values, errors };
}

function pathsOf(object: KubeObject, rule: FeedbackRule): [string, string][] | undefined {
  if (rule.type === 'JSONPaths') {
    return (rule.jsonPaths ?? []).map(({ name, path }) => [name, path]);
  }
  const known = wellKnown[object.kind ?? ''];
  return known && Object.entries(known);
}

/**
 * What a JSONPath without braces finds: fields (`\\.` for a dot in a name), indexes, `[-1:]` for the last, and filters
 * `[?(@.field=="text")]`.
 */
function lookUp(object: unknown, path: string): unknown {
  let value = object;
  for (const [step, field, index, last, key, wanted] of path.matchAll(
    /\.((?:[\w/-]|\\\.)+)|\[(\d+)\]|\[(-1:)\]|\[\?\(@\.([\w-]+)\s*==\s*"([^"]*)"\)\]/g,
  )) {
    if (value === null || typeof value !== 'object') {
      return undefined;
    }
    if (field !== undefined) {
      value = (value as Record<string, unknown>)[field.replaceAll('\\.', '.')];
    } else if (index !== undefined) {
      value = (value as unknown[])[Number(index)];
    } else if (last !== undefined) {
      value = (value as unknown[]).at(-1);
    } else if (key !== undefined && Array.isArray(value)) {
      value = value.find((item) => item?.[key] === wanted);
    } else {
      throw new Error(`unsupported JSONPath step ${step} in ${path}`);
    }
  }
  return value ?? undefined;
}

function fieldValueOf(value: unknown): FeedbackValue['fieldValue'] | undefined {
  if (typeof value === 'string') {
    return { type: 'String', string: value };
  }
  if (typeof value === 'boolean') {
    return { type: 'Boolean', boolean: value };
  }
  if (typeof value === 'number' && Number.isInteger(value)) {
    return { type: 'Integer', integer: value };
  }
  return undefined;
}
