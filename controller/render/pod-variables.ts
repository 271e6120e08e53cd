import { z } from 'zod';
import { type Parsed, problemsOf, quoted } from '../hub/index.ts';

/** What variables of an AddOnDeploymentConfig say about all pods. */
export interface PodVariables {
  /** `IMAGE_PULL_SECRETS`: names of Secrets in the pods' namespaces. */
  readonly imagePullSecrets: readonly string[];
  /** `POD_SECURITY_CONTEXT`: fields over those of the pods' security contexts. Null takes a field away. */
  readonly podSecurityContext: Readonly<Record<string, unknown>>;
  /** `CONTAINER_SECURITY_CONTEXT`: the same of the containers. */
  readonly containerSecurityContext: Readonly<Record<string, unknown>>;
}

/** Most Secrets, and most groups of a pod. Far fewer are of use. */
const mostEntries = 16;

const id = z.int({ error: 'must be a number' }).min(0, { error: 'must not be negative' }).nullable().optional();
const flag = z.boolean({ error: 'must be true or false' }).nullable().optional();
const text = z.string({ error: 'must be a text' }).max(253);
const common = {
  runAsUser: id,
  runAsGroup: id,
  runAsNonRoot: flag,
  seccompProfile: z.strictObject({ type: text, localhostProfile: text.optional() }).nullable().optional(),
  seLinuxOptions: z
    .record(z.enum(['user', 'role', 'type', 'level']), text.optional())
    .nullable()
    .optional(),
};
const forPods = z.strictObject({
  ...common,
  fsGroup: id,
  fsGroupChangePolicy: z.enum(['Always', 'OnRootMismatch']).nullable().optional(),
  supplementalGroups: z.array(z.int().min(0)).max(mostEntries).nullable().optional(),
});
const capabilities = z.array(text).max(mostEntries).optional();
const forContainers = z.strictObject({
  ...common,
  allowPrivilegeEscalation: flag,
  privileged: flag,
  readOnlyRootFilesystem: flag,
  capabilities: z.strictObject({ add: capabilities, drop: capabilities }).nullable().optional(),
});

/**
 * Reads the variables.
 * @returns a problem that begins with the name of the variable in brackets
 */
export function parsePodVariables(variable: (name: string) => string): Parsed<PodVariables> {
  const imagePullSecrets = variable('IMAGE_PULL_SECRETS')
    .split(/[,\s]+/)
    .filter(Boolean);
  const wrong = imagePullSecrets.find((name) => name.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name));
  if (wrong !== undefined) {
    return { problem: `[IMAGE_PULL_SECRETS] must be names of Secrets, with commas between them, not ${quoted(wrong)}` };
  }
  if (imagePullSecrets.length > mostEntries) {
    return { problem: `[IMAGE_PULL_SECRETS] must be at most ${mostEntries} names` };
  }
  const pod = contextOf(variable, 'POD_SECURITY_CONTEXT', forPods);
  if (pod.problem !== undefined) {
    return pod;
  }
  const container = contextOf(variable, 'CONTAINER_SECURITY_CONTEXT', forContainers);
  if (container.problem !== undefined) {
    return container;
  }
  return {
    value: { imagePullSecrets, podSecurityContext: pod.value, containerSecurityContext: container.value },
  };
}

function contextOf(
  variable: (name: string) => string,
  name: string,
  schema: typeof forPods | typeof forContainers,
): Parsed<Record<string, unknown>> {
  const json = variable(name);
  if (json === '') {
    return { value: {} };
  }
  let content: unknown;
  try {
    content = JSON.parse(json);
  } catch {
    return { problem: `[${name}] must be JSON such as {"runAsUser": 1000}, not ${quoted(json)}` };
  }
  const result = schema.safeParse(content);
  return result.success ? { value: result.data } : { problem: `[${name}] ${problemsOf(result.error)}` };
}
