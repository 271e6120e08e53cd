import { setTimeout as sleep } from 'node:timers/promises';
import { isAlreadyExists, isInvalid, isNotFound, type KubeClient } from '../../lib/kube/index.ts';
import { admissionPolicies, admissionPolicyBindings, persist } from '../testbed/index.ts';

/** What can be refused: changes of a status; an operation that is set or taken back; what becomes of copies. */
export type RefusedWrites = 'statuses' | 'operations' | 'copies';

const prefix = 'chaos-refuses-';
const message = 'chaos refuses this for a while';

const differs = (field: string) =>
  `has(object.${field}) != has(oldObject.${field}) || (has(object.${field}) && object.${field} != oldObject.${field})`;

const refusals: Readonly<Record<RefusedWrites, { readonly operations: readonly string[]; readonly when: string }>> = {
  statuses: { operations: ['UPDATE'], when: differs('status') },
  operations: { operations: ['UPDATE'], when: 'has(object.operation) != has(oldObject.operation)' },
  copies: {
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    when: "request.operation == 'UPDATE' ? object.spec != oldObject.spec : true",
  },
};

/** The ValidatingAdmissionPolicy that refuses this in these namespaces, whoever asks. */
export function refusingPolicy(refusal: RefusedWrites, namespaces: readonly string[]): Record<string, unknown> {
  const { operations, when } = refusals[refusal];
  return {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [
        { apiGroups: ['argoproj.io'], apiVersions: ['*'], operations, resources: ['applications', 'appprojects'] },
      ],
    },
    matchConditions: [{ name: 'place', expression: `request.namespace in ${JSON.stringify(namespaces)}` }],
    validations: [{ expression: `!(${when})`, message }],
  };
}

/** Refuses it from now on; resolves with what ends that. */
export async function refuse(
  client: KubeClient,
  refusal: RefusedWrites,
  namespaces: readonly string[],
): Promise<() => Promise<void>> {
  const name = `${prefix}${refusal}`;
  const spec = refusingPolicy(refusal, namespaces);
  const bound = { policyName: name, validationActions: ['Deny'] };
  await persist(() => client.create(admissionPolicies, { metadata: { name }, spec })).catch(unless(isAlreadyExists));
  await persist(() => client.create(admissionPolicyBindings, { metadata: { name }, spec: bound })).catch(
    unless(isAlreadyExists),
  );
  return () => lift(client, name);
}

/** Ends all that is refused on a cluster. */
export async function refuseNothing(client: KubeClient): Promise<void> {
  const found = await persist(() => client.list(admissionPolicies));
  for (const { metadata } of found.filter(({ metadata: { name } }) => name.startsWith(prefix))) {
    await lift(client, metadata.name);
  }
}

/** Whether a write failed because of {@link refuse}. */
export function isRefused(error: unknown): boolean {
  return isInvalid(error) && String(error).includes(message);
}

/** Tries until the API server answers something else than that it refuses this for a while. */
export async function untilAdmitted<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await persist(attempt);
    } catch (error) {
      if (!isRefused(error)) {
        throw error;
      }
      await sleep(500);
    }
  }
}

async function lift(client: KubeClient, name: string): Promise<void> {
  for (const type of [admissionPolicyBindings, admissionPolicies]) {
    await persist(() => client.delete(type, { name })).catch(unless(isNotFound));
  }
}

const unless = (isExpected: (error: unknown) => boolean) => (error: unknown) => {
  if (!isExpected(error)) {
    throw error;
  }
};
