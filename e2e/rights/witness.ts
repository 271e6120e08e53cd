import { Informer, type KubeClient, type KubeObject, type PolicyRule, resourceType } from '../../lib/kube/index.ts';
import { idOfRights } from './audit.ts';
import { type Given, grantsOf } from './grants.ts';

interface RoleObject extends KubeObject {
  rules?: PolicyRule[];
}
interface Binding extends KubeObject {
  roleRef: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[];
}

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' };
const roleTypes = [
  resourceType<RoleObject>({ ...rbac, kind: 'Role', plural: 'roles', namespaced: true }),
  resourceType<RoleObject>({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles', namespaced: false }),
];
const bindingTypes = [
  resourceType<Binding>({ ...rbac, kind: 'RoleBinding', plural: 'rolebindings', namespaced: true }),
  resourceType<Binding>({ ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings', namespaced: false }),
];

/** Remembers every role and binding that a cluster ever had, also those that are gone when somebody asks. */
export class RightsWitness {
  readonly #roles = new Map<string, RoleObject>();
  readonly #bindings = new Map<string, Binding>();
  readonly #ended = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  private constructor() {}

  /** Starts to watch, and resolves when what there is now is known. */
  static async start(client: KubeClient): Promise<RightsWitness> {
    const witness = new RightsWitness();
    await Promise.all([
      ...roleTypes.map((type) =>
        witness.#follow(client, type, (role) =>
          witness.#roles.set(idOfRights(type.plural, role.metadata.namespace, role.metadata.name), role),
        ),
      ),
      ...bindingTypes.map((type) =>
        witness.#follow(client, type, (binding) =>
          witness.#bindings.set(idOfRights(type.plural, binding.metadata.namespace, binding.metadata.name), binding),
        ),
      ),
    ]);
    return witness;
  }

  /** What a service account was ever given by name. */
  grantsTo(account: { namespace: string; name: string }): Given[] {
    return [...this.#bindings].flatMap(([binding, { metadata, roleRef, subjects = [] }]) => {
      const isSubject = subjects.some(
        ({ kind, namespace, name }) =>
          kind === 'ServiceAccount' && name === account.name && namespace === account.namespace,
      );
      if (!isSubject) {
        return [];
      }
      const namespace = metadata.namespace ?? '';
      const isRole = roleRef.kind === 'Role';
      const role = idOfRights(isRole ? 'roles' : 'clusterroles', isRole ? namespace : '', roleRef.name);
      const grants = grantsOf(`${roleRef.kind} ${roleRef.name}`, namespace, this.#roles.get(role)?.rules ?? []);
      return grants.map((grant) => ({ ...grant, by: [role, binding] }));
    });
  }

  /** Stops watching; what was seen stays known. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#running);
  }

  async #follow<T extends KubeObject>(
    client: KubeClient,
    type: ReturnType<typeof resourceType<T>>,
    remember: (object: T) => void,
  ): Promise<void> {
    const { signal } = this.#ended;
    const informer = new Informer<T>({ client, type });
    informer.subscribe({ added: remember, updated: (_, object) => remember(object), deleted: () => undefined });
    this.#running.push(
      informer.run(signal).catch((error: unknown) => {
        if (!signal.aborted) {
          throw error;
        }
      }),
    );
    await informer.synced(signal);
  }
}
